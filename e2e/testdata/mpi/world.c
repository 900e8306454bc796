// The MPI program of TestMPI: what it does is its first argument.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void fail(const char *what) {
	fprintf(stderr, "task %d: wrong %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 99);
}

static void ring(void) {
	int from = (rank + size - 1) % size, got = -1;
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (got != from)
		fail("ring");
}

static void reduce(void) {
	int sum = -1;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2)
		fail("sum");
}

static void exchange(void) {
	int *out = malloc(size * sizeof *out), *in = malloc(size * sizeof *in);
	for (int i = 0; i < size; i++)
		out[i] = rank * 1000 + i;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		if (in[i] != i * 1000 + rank)
			fail("exchange");
	free(out);
	free(in);
}

static void split(void) {
	MPI_Comm half;
	int n = 0;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_size(half, &n);
	if (n != (size + 1 - rank % 2) / 2)
		fail("split");
	MPI_Comm_free(&half);
}

static void put(void) {
	int from = (rank + size - 1) % size, got = -1;
	MPI_Win win;
	MPI_Win_create(&got, sizeof got, sizeof got, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	if (got != from)
		fail("put");
	MPI_Win_free(&win);
}

// bulk moves so much that counters of a network tell.
static void bulk(void) {
	enum { count = 1 << 18 };
	int *out = malloc(count * sizeof *out), *in = malloc(count * sizeof *in);
	for (int i = 0; i < count; i++)
		out[i] = rank + i;
	MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		if (in[i] != size - 1 + i)
			fail("bulk");
	free(out);
	free(in);
}

// go on until somebody ends it.
static void stay(void) {
	if (rank == 0) {
		printf("begun\n");
		fflush(stdout);
	}
	for (;;) {
		reduce();
		usleep(10000);
	}
}

int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int last = rank == size - 1;
	if (!strcmp(what, "all")) {
		ring();
		reduce();
		exchange();
		split();
	}
	if (!strcmp(what, "sum"))
		reduce();
	if (!strcmp(what, "bulk"))
		bulk();
	if (!strcmp(what, "put"))
		put();
	if (!strcmp(what, "stay"))
		stay();
	MPI_Barrier(MPI_COMM_WORLD); // whoever dies does so in a world that is complete
	if (!strcmp(what, "abort") && last)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (!strcmp(what, "exit") && last)
		_exit(3);
	if (!strcmp(what, "kill") && last)
		raise(SIGKILL);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("world of %d\n", size);
	if (argc > 2 && !strcmp(argv[2], "leave")) { // without MPI_Finalize, in which MPICH 4.0 may wait for ever over TCP
		fflush(stdout);
		MPI_Barrier(MPI_COMM_WORLD);
		_exit(0);
	}
	MPI_Finalize();
	return 0;
}
