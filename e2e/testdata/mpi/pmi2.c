// The program of TestSpawnPMI2: it starts itself by Slurm's library of PMI-2, or the program that is its argument.
#include <slurm/pmi2.h>
#include <stdio.h>
#include <string.h>

static void start(const char *program, int several) {
	const char *commands[] = {program, program}, *first[] = {"two; words"}, *second[] = {"b"};
	const char **args[] = {first, second};
	const struct MPID_Info *none[] = {NULL, NULL};
	struct MPID_Info put = {.key = "key", .value = "a;b=c"};
	const struct MPID_Info *puts[] = {&put};
	int words[] = {1, 1}, tasks[] = {2, 1}, infos[] = {0, 0}, errors[3] = {9, 9, 9};
	char job[256] = "";
	int failed = PMI2_Job_Spawn(several ? 2 : 1, commands, words, args, tasks, infos, none, 1, puts, job, sizeof job, errors);
	printf("spawn %d: %d %d %d\n", failed, errors[0], errors[1], errors[2]);
}

int main(int argc, char **argv) {
	int spawned, size, rank, number, length;
	char job[256] = "", value[256] = "";
	PMI2_Init(&spawned, &size, &rank, &number);
	PMI2_Job_GetId(job, sizeof job);
	if (!spawned && rank == 0)
		start(argc > 1 ? argv[1] : argv[0], argc == 1);
	if (spawned && PMI2_KVS_Get(job, PMI2_ID_NULL, "key", value, sizeof value, &length) == 0)
		printf("child %d of %d, program %d: %s, %s\n", rank, size, number, value, argv[1]);
	fflush(stdout);
	PMI2_KVS_Fence();
	PMI2_Finalize();
	return 0;
}
