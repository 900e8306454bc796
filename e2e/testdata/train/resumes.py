"""A stand-in for a training program that saves checkpoints as one of the usual frameworks does ($TRAIN says which)."""
import os
import signal
import subprocess
import sys
import time

rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
world = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))
again = os.environ.get("SLURM_RESTART_COUNT", "0")
how = os.environ["TRAIN"]
print("rank %d of %d, restart %s" % (rank, world, again), flush=True)


def lightning(*_):
    if rank == 0:
        print("saves", flush=True)
        subprocess.check_call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])


if how == "lightning":
    signal.signal(signal.SIGUSR1, lightning)
if how == "once" or again != "0":
    sys.exit(0)
if how in ("megatron", "deepspeed") and rank == 0:
    name = {"megatron": "latest_checkpointed_iteration.txt", "deepspeed": "latest"}[how]
    folder = sys.argv[sys.argv.index("--save") + 1]
    os.makedirs(folder, exist_ok=True)
    for step in range(1, 10000):
        with open(os.path.join(folder, name), "w") as f:
            f.write("%d\n" % step)
        time.sleep(1)
if how == "plain":
    while not os.path.exists(sys.argv[sys.argv.index("--save-when") + 1]):
        time.sleep(0.1)
    print("saves", flush=True)
    sys.exit(0)
while True:
    time.sleep(1)
