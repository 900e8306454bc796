package pmix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestABI compares abi.h and the constants of this package with the standard's headers, of whatever
// version is installed.
func TestABI(t *testing.T) {
	headers := needHeaders(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip(err)
	}
	here, err := filepath.Abs("testdata/abi.c")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#include %q\n#include <pmix.h>\n#include <pmix_deprecated.h>\n", here)
	for name, value := range map[string]int64{
		"PMIX_SUCCESS": statusSuccess, "PMIX_ERROR": statusError, "PMIX_ERR_PROC_ABORTED": statusAborted,
		"PMIX_ERR_TIMEOUT":   statusTimeout,
		"PMIX_ERR_BAD_PARAM": statusBadParam, "PMIX_ERR_NOT_FOUND": statusNotFound,
		"PMIX_ERR_NOT_SUPPORTED": statusNotSupported,
		"PMIX_ERR_DUPLICATE_KEY": statusDuplicateKey, "PMIX_ERR_LOST_CONNECTION": statusLost,
		"PMIX_OPERATION_SUCCEEDED": statusDone,
		"PMIX_BOOL":                typeBool, "PMIX_STRING": typeString, "PMIX_INT": typeInt,
		"PMIX_UINT16": typeUint16, "PMIX_UINT32": typeUint32,
		"PMIX_STATUS": typeStatus, "PMIX_PROC": typeProc, "PMIX_INFO": typeInfo, "PMIX_BYTE_OBJECT": typeByteObject,
		"PMIX_PERSIST": typePersist, "PMIX_DATA_RANGE": typeRange, "PMIX_DATA_ARRAY": typeArray,
		"PMIX_PROC_RANK":  typeRank,
		"PMIX_RANK_UNDEF": rankUndefined, "(PMIX_RANK_WILDCARD)": rankWildcard, "(PMIX_RANK_LOCAL_NODE)": rankLocalNode,
		"(PMIX_RANK_LOCAL_PEERS)": rankLocalPeers, "PMIX_RANGE_LOCAL": rangeLocal,
		"PMIX_RANGE_SESSION": rangeSession, "PMIX_RANGE_PROC_LOCAL": rangeProcLocal,
		"PMIX_PERSIST_FIRST_READ": persistFirstRead,
	} {
		fmt.Fprintf(&b, "SAME(%dL, %s);\n", value, name)
	}
	b.WriteString("#include <assert.h>\n#define KEY(ours, theirs) if (strcmp(ours, theirs)) return printf(\"%s is not %s\\n\", ours, theirs)\nint main(void)\n{\n")
	for name, key := range map[string]string{
		"PMIX_SERVER_TMPDIR": keyServerTmpdir, "PMIX_SYSTEM_TMPDIR": keySystemTmpdir,
		"PMIX_SERVER_NSPACE": keyServerNspace,
		"PMIX_SERVER_RANK":   keyServerRank, "PMIX_USERID": keyUserID, "PMIX_GRPID": keyGroupID,
		"PMIX_HOSTNAME": keyHostname,
		"PMIX_NODEID":   keyNodeID, "PMIX_JOBID": keyJobID, "PMIX_SESSION_ID": keySessionID,
		"PMIX_UNIV_SIZE": keyUnivSize,
		"PMIX_JOB_SIZE":  keyJobSize, "PMIX_APP_SIZE": keyAppSize, "PMIX_JOB_NUM_APPS": keyJobApps,
		"PMIX_MAX_PROCS": keyMaxProcs,
		"PMIX_NUM_NODES": keyNumNodes, "PMIX_LOCAL_SIZE": keyLocalSize, "PMIX_NODE_SIZE": keyNodeSize,
		"PMIX_APPNUM": keyAppNum,
		"PMIX_APPLDR": keyAppLeader, "PMIX_NPROC_OFFSET": keyOffset, "PMIX_NODE_MAP": keyNodeMap,
		"PMIX_PROC_MAP": keyProcMap,
		"PMIX_ANL_MAP":  keyMapping, "PMIX_LOCAL_PEERS": keyLocalPeers, "PMIX_LOCALLDR": keyLeader,
		"PMIX_TMPDIR": keyTmpdir,
		"PMIX_NSDIR":  keyNspaceDir, "PMIX_TDIR_RMCLEAN": keyCleaned, "PMIX_PROC_DATA": keyProcData,
		"PMIX_RANK":        keyRank,
		"PMIX_GLOBAL_RANK": keyGlobalRank, "PMIX_APP_RANK": keyAppRank, "PMIX_LOCAL_RANK": keyLocalRank,
		"PMIX_NODE_RANK": keyNodeRank,
		"PMIX_SPAWNED":   keySpawned, "PMIX_TIMEOUT": keyTimeout, "PMIX_WAIT": keyWait, "PMIX_RANGE": keyRange,
		"PMIX_PERSISTENCE": keyPersistence, "PMIX_EVENT_AFFECTED_PROC": keyAffected,
	} {
		fmt.Fprintf(&b, "\tKEY(%q, %s);\n", key, name)
	}
	b.WriteString("\treturn 0;\n}\n")
	source, program := filepath.Join(t.TempDir(), "all.c"), filepath.Join(t.TempDir(), "all")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-I", headers, "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
