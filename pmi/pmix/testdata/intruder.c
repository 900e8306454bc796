// A PMIx client for tests that is another user's: it says that it is the user of TEST_UID, and asks for the step's end.
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uid_t geteuid(void) { return atoi(getenv("TEST_UID")); }
gid_t getegid(void) { return atoi(getenv("TEST_UID")); }

int main(void)
{
	pmix_proc_t self;
	pmix_status_t failed = PMIx_Init(&self, NULL, 0);
	if (failed) {
		printf("refused: %s\n", PMIx_Error_string(failed));
		return 0;
	}
	printf("joined\n");
	fflush(stdout);
	PMIx_Abort(3, "the step of another user", NULL, 0);
	return 0;
}
