"""A training program as small as one can be: every epoch all ranks add up what they found in their part of the data."""
import os
import socket
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
epochs = int(sys.argv[sys.argv.index("--epochs") + 1])


def line(sock):
    text = b""
    while not text.endswith(b"\n"):
        more = sock.recv(64)
        if not more:
            sys.exit("rank %d: the others are gone" % rank)
        text += more
    return int(text)


def meet():
    """The connections of rank 0 to all others, or the others' to it."""
    if rank == 0:
        server = socket.create_server(place, backlog=world)
        return [server.accept()[0] for _ in range(world - 1)]
    for _ in range(600):
        try:
            return [socket.create_connection(place, 5)]
        except OSError:
            time.sleep(0.1)
    sys.exit("rank %d: nobody listens at %s:%d" % ((rank,) + place))


def add_up(value):
    if rank > 0:
        peers[0].sendall(b"%d\n" % value)
        return line(peers[0])
    total = value + sum(line(p) for p in peers)
    for p in peers:
        p.sendall(b"%d\n" % total)
    return total


peers = meet()
data = [int(n) for n in open("/data/numbers").read().split()][rank::world]
total = 0
for epoch in range(epochs):
    total = add_up(sum(data) + total // world)
gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
image = open("/etc/second").read().strip()
sys.stdout.write("rank %d of %d, GPU %s, image %s: %d\n" % (rank, world, gpus[int(os.environ["LOCAL_RANK"])], image, total))
if rank == 0:
    with open("/ckpt/last", "w") as f:
        f.write("%d\n" % total)
