// A PMIx client for tests, without MPI. "client facts" prints what the server has told it, "client lost" waits for the event of a
// lost task.
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t self, all;

static void print(const pmix_proc_t *of, const char *key)
{
	pmix_value_t *v;
	pmix_status_t failed = PMIx_Get(of, key, NULL, 0, &v);
	printf("%s", key);
	if (of->rank != PMIX_RANK_WILDCARD)
		printf(" of %u", of->rank);
	if (failed)
		printf(" %s\n", PMIx_Error_string(failed));
	else if (v->type == PMIX_STRING)
		printf(" = %s\n", v->data.string);
	else if (v->type == PMIX_UINT16)
		printf(" = %u\n", v->data.uint16);
	else if (v->type == PMIX_UINT32 || v->type == PMIX_PROC_RANK)
		printf(" = %u\n", v->data.uint32);
	else if (v->type == PMIX_BOOL)
		printf(" = %d\n", v->data.flag);
	else
		printf(" is of type %u\n", v->type);
}

static void facts(void)
{
	const char *job[] = {PMIX_JOBID, PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_APP_SIZE, PMIX_MAX_PROCS, PMIX_JOB_NUM_APPS, PMIX_NUM_NODES,
		PMIX_LOCAL_SIZE, PMIX_NODE_SIZE, PMIX_LOCAL_PEERS, PMIX_LOCALLDR, PMIX_ANL_MAP, PMIX_TDIR_RMCLEAN, PMIX_NODEID, PMIX_HOSTNAME};
	const char *task[] = {PMIX_HOSTNAME, PMIX_LOCAL_RANK, PMIX_NODE_RANK, PMIX_GLOBAL_RANK, PMIX_APP_RANK, PMIX_APPNUM};
	for (size_t i = 0; i < sizeof job / sizeof *job; i++)
		print(&all, job[i]);
	pmix_proc_t *procs;
	size_t n;
	for (pmix_proc_t p = all; (p.rank = p.rank == PMIX_RANK_WILDCARD ? 0 : p.rank + 1) < 4;)
		for (size_t i = 0; i < sizeof task / sizeof *task; i++)
			print(&p, task[i]);
	if (!PMIx_Resolve_peers(getenv("TEST_LAST_NODE"), self.nspace, &procs, &n)) {
		printf("peers on the second node:");
		for (size_t i = 0; i < n; i++)
			printf(" %u", procs[i].rank);
		printf("\n");
	}
	char *nodes;
	if (!PMIx_Resolve_nodes(self.nspace, &nodes))
		printf("nodes: %s\n", nodes);
}

static volatile int told;

static void lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t n, pmix_info_t *results, size_t nresults,
	pmix_event_notification_cbfunc_fn_t done, void *data)
{
	for (size_t i = 0; i < n; i++)
		if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
			printf("status %d of rank %u\n", status, info[i].value.data.proc->rank);
	fflush(stdout);
	told++;
	done(PMIX_SUCCESS, NULL, 0, NULL, NULL, data);
}

int main(int argc, char **argv)
{
	if (PMIx_Init(&self, NULL, 0))
		return 1;
	PMIX_PROC_LOAD(&all, self.nspace, PMIX_RANK_WILDCARD);
	if (!strcmp(argv[1], "facts") && self.rank == 0)
		facts();
	if (!strcmp(argv[1], "lost")) {
		pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED}; // Debian's version tells handlers of all events of none
		PMIx_Register_event_handler(codes, 1, NULL, 0, lost, NULL, NULL);
		printf("waiting\n");
		fflush(stdout);
		for (int i = 0; self.rank < 2 && told < 2 && i < 100; i++)
			usleep(100000);
	}
	PMIx_Finalize(NULL, 0);
	printf("rank %u ok\n", self.rank);
	return 0;
}
