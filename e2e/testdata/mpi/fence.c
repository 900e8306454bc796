/* The ranks of a step find each other by PMIx and put a value of so many bytes each, which a fence that collects gives
 * to all. Rank 0 tells how long that took, in microseconds. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void must(int rc, const char *what)
{
	if (rc == PMIX_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, PMIx_Error_string(rc));
	exit(1);
}

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 4096;
	char *bytes = malloc(size);
	pmix_proc_t me, all, next;
	pmix_value_t value, *got;
	pmix_info_t collect;
	bool yes = true;
	uint32_t ranks;
	double began;

	must(PMIx_Init(&me, NULL, 0), "init");
	PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
	must(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &got), "the size of the world");
	ranks = got->data.uint32;
	memset(bytes, 'a' + me.rank % 26, size);
	value.type = PMIX_BYTE_OBJECT;
	value.data.bo.bytes = bytes;
	value.data.bo.size = size;
	must(PMIx_Put(PMIX_GLOBAL, "value", &value), "put");
	must(PMIx_Commit(), "commit");
	must(PMIx_Fence(&all, 1, NULL, 0), "the fence before");
	began = now();
	PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	must(PMIx_Fence(&all, 1, &collect, 1), "fence");
	if (me.rank == 0)
		printf("%.0f\n", now() - began);
	PMIX_LOAD_PROCID(&next, me.nspace, (me.rank + 1) % ranks);
	must(PMIx_Get(&next, "value", NULL, 0, &got), "get");
	if (got->data.bo.size != size || got->data.bo.bytes[0] != (char)('a' + next.rank % 26)) {
		fprintf(stderr, "rank %u has another value of rank %u\n", me.rank, next.rank);
		return 1;
	}
	return PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
}
