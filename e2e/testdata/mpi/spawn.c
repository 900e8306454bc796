// The MPI program of TestMPISpawn: what its new tasks do is its first argument, then come the programs that it starts,
// each behind its number of tasks.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

// sum is how many there are of both sides.
static int sum(MPI_Comm between, int child) {
	MPI_Comm all;
	int one = 1, n = 0;
	MPI_Intercomm_merge(between, child, &all);
	MPI_Allreduce(&one, &n, 1, MPI_INT, MPI_SUM, all);
	MPI_Comm_free(&all);
	return n;
}

static int parent(int argc, char **argv) {
	int count = (argc - 2) / 2, tasks[8], n = 0, errors[64];
	char *programs[8], *words[] = {argv[1], "two words", NULL}, **args[8];
	MPI_Info info[8];
	MPI_Comm child;
	for (int i = 0; i < count; i++) {
		tasks[i] = atoi(argv[2 + 2 * i]);
		programs[i] = argv[3 + 2 * i];
		args[i] = words;
		info[i] = MPI_INFO_NULL;
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	int failed = MPI_Comm_spawn_multiple(count, programs, args, tasks, info, 0, MPI_COMM_WORLD, &child, errors);
	if (failed) {
		printf("not spawned\n");
		return 3;
	}
	MPI_Comm_remote_size(child, &n);
	int all = sum(child, 0);
	if (rank == 0)
		printf("parents %d, children %d, all %d\n", size, n, all);
	fflush(stdout);
	if (!strcmp(argv[1], "orphan"))
		kill(getpid(), SIGKILL);
	if (!strcmp(argv[1], "abort"))
		return 0; // the others do not come to MPI_Finalize
	MPI_Comm_disconnect(&child);
	MPI_Finalize();
	return 0;
}

static int child(MPI_Comm parent, int argc, char **argv) {
	int *number, flag, got;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
	sum(parent, 1);
	printf("child %d of %d, program %d, words %d: %s\n", rank, size, *number, argc, argv[argc - 1]);
	fflush(stdout);
	if (!strcmp(argv[1], "abort") && rank == 0)
		MPI_Abort(MPI_COMM_WORLD, 5);
	if (!strcmp(argv[1], "orphan")) // its parent says nothing more
		MPI_Recv(&got, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
	MPI_Comm_disconnect(&parent);
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv) {
	MPI_Comm from;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&from);
	return from == MPI_COMM_NULL ? parent(argc, argv) : child(from, argc, argv);
}
