// An MPI program for tests: tasks WHAT SIZE. It checks that it has SIZE tasks, since Open MPI runs tasks that find no server as
// programs of one task each, and ends with "ok".
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void need(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "rank %d of %d: %s is wrong\n", rank, size, what);
	MPI_Abort(MPI_COMM_WORLD, 99);
}

static void ring(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, token = rank, got = -1;
	for (int i = 0; i < size; i++) {
		MPI_Sendrecv(&token, 1, MPI_INT, next, 0, &got, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token = got;
	}
	need(token == rank, "the token");
}

static void allreduce(void)
{
	int sum = 0;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	need(sum == size * (size - 1) / 2, "the sum");
}

static void alltoall(void)
{
	int *out = malloc(size * sizeof *out), *in = malloc(size * sizeof *in);
	for (int i = 0; i < size; i++)
		out[i] = rank * 1000 + i;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		need(in[i] == i * 1000 + rank, "an exchanged number");
}

static void split(void)
{
	MPI_Comm half, node;
	int n, m, k, one = 1, locals = 0;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_size(half, &n);
	need(n == (size + 1 - rank % 2) / 2, "the half's size");
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &m);
	MPI_Allreduce(&one, &locals, 1, MPI_INT, MPI_SUM, node);
	need(locals == m && m == atoi(getenv("TEST_LOCAL")), "the node's size");
	MPI_Comm_rank(node, &k);
	need(k == atoi(getenv("TEST_LOCALID")), "the rank on the node");
}

static void put(void)
{
	int *mem, value = rank + 1;
	MPI_Win win;
	MPI_Win_allocate(sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	MPI_Win_fence(0, win);
	MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	need(*mem == (rank + size - 1) % size + 1, "what was put");
	MPI_Win_free(&win);
}

static void names(void)
{
	char port[MPI_MAX_PORT_NAME] = "port of rank 0", got[MPI_MAX_PORT_NAME] = "";
	if (rank == 0)
		MPI_Publish_name("service", MPI_INFO_NULL, port);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Lookup_name("service", MPI_INFO_NULL, got);
	need(!strcmp(got, port), "the name's port");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Unpublish_name("service", MPI_INFO_NULL, port);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	need(MPI_Lookup_name("service", MPI_INFO_NULL, got) != MPI_SUCCESS, "a name that nobody publishes");
}

// meet has the first and the last rank, on different nodes as a rule, meet by a port.
static void meet(void)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm other;
	int got = -1, last = size - 1;
	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Send(port, sizeof port, MPI_CHAR, last, 1, MPI_COMM_WORLD);
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
	} else if (rank == last) {
		MPI_Recv(port, sizeof port, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
	} else {
		return;
	}
	MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
	need(got == (rank == 0 ? last : 0), "who was met");
	MPI_Comm_disconnect(&other);
}

static void spawn(void)
{
	MPI_Comm more;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	int failed = MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &more, MPI_ERRCODES_IGNORE);
	need(failed != MPI_SUCCESS, "a started task");
}

static void die(int ending)
{
	if (rank == size - 1) {
		if (ending)
			MPI_Abort(MPI_COMM_WORLD, 7);
		raise(9);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	sleep(60);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	const char *what = argv[1];
	need(size == atoi(argv[2]), "the number of tasks");
	int all = !strcmp(what, "all");
	if (all || !strcmp(what, "ring"))
		ring();
	if (all || !strcmp(what, "allreduce"))
		allreduce();
	if (all || !strcmp(what, "alltoall"))
		alltoall();
	if (all || !strcmp(what, "split"))
		split();
	if (all || !strcmp(what, "put"))
		put();
	if (!strcmp(what, "names"))
		names();
	if (!strcmp(what, "meet"))
		meet();
	if (!strcmp(what, "spawn"))
		spawn();
	if (!strcmp(what, "abort"))
		die(1);
	if (!strcmp(what, "lose"))
		die(0);
	MPI_Finalize();
	printf("rank %d of %d ok\n", rank, size);
	return 0;
}
