package pmix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/pmi"
)

// info is one thing that PMIx is told. value is of the type that the standard gives the key:
// string, uint32, uint16, bool, rank, or []info.
type info struct {
	key   string
	value any
}

// rank is the type of a rank's number.
type rank uint32

// The keys that are told or read (PMIx standard 4.0, appendix of attributes).
const (
	keyServerTmpdir = "pmix.srvr.tmpdir"
	keySystemTmpdir = "pmix.sys.tmpdir"
	keyServerNspace = "pmix.srv.nspace"
	keyServerRank   = "pmix.srv.rank"
	keyUserID       = "pmix.euid"
	keyGroupID      = "pmix.egid"
	keyHostname     = "pmix.hname"
	keyNodeID       = "pmix.nodeid"

	keyJobID      = "pmix.jobid"
	keySessionID  = "pmix.session.id"
	keyUnivSize   = "pmix.univ.size"
	keyJobSize    = "pmix.job.size"
	keyAppSize    = "pmix.app.size"
	keyJobApps    = "pmix.job.napps"
	keyMaxProcs   = "pmix.max.size"
	keyNumNodes   = "pmix.num.nodes"
	keyLocalSize  = "pmix.local.size"
	keyNodeSize   = "pmix.node.size"
	keyAppNum     = "pmix.appnum"
	keyAppLeader  = "pmix.aldr"
	keyOffset     = "pmix.offset"
	keyNodeMap    = "pmix.nmap"
	keyProcMap    = "pmix.pmap"
	keyMapping    = "pmix.anlmap"
	keyLocalPeers = "pmix.lpeers"
	keyLeader     = "pmix.lldr"
	keyTmpdir     = "pmix.tmpdir"
	keyNspaceDir  = "pmix.nsdir"
	keyCleaned    = "pmix.tdir.rmclean"

	keyProcData   = "pmix.pdata"
	keyRank       = "pmix.rank"
	keyGlobalRank = "pmix.grank"
	keyAppRank    = "pmix.apprank"
	keyLocalRank  = "pmix.lrank"
	keyNodeRank   = "pmix.nrank"
	keySpawned    = "pmix.spawned"

	keyTimeout     = "pmix.timeout"
	keyWait        = "pmix.wait"
	keyRange       = "pmix.range"
	keyPersistence = "pmix.persist"
	keyAffected    = "pmix.evproc"
)

// serverInfo is what the library is told of this server. Each node's has a name and files of its
// own, so that the servers of several nodes on one machine do not meet.
func serverInfo(s *pmi.Setup, dir string) []info {
	return []info{
		{keyServerTmpdir, dir},
		{keySystemTmpdir, dir},
		{keyServerNspace, nspaceOf(s) + ".server"},
		{keyServerRank, rank(s.Node)},
		{keyUserID, s.UID},
		{keyGroupID, s.GID},
		{keyHostname, s.Hosts[s.Node]},
		{keyNodeID, uint32(s.Node)},
	}
}

// nodeList and procList are the nodes, and the ranks of each, as PMIx_generate_regex and
// PMIx_generate_ppn take them.
func nodeList(s *pmi.Setup) string { return strings.Join(s.Hosts, ",") }

func procList(s *pmi.Setup) string {
	var nodes []string
	for _, ranks := range s.Ranks {
		nodes = append(nodes, join(ranks))
	}
	return strings.Join(nodes, ";")
}

func join(ranks []int) string {
	var parts []string
	for _, r := range ranks {
		parts = append(parts, strconv.Itoa(r))
	}
	return strings.Join(parts, ",")
}

// jobInfo is what tasks are told of their step. nodeMap and procMap are what the library has made
// of nodeList and procList.
func jobInfo(s *pmi.Setup, dir, nodeMap, procMap string) []info {
	local := uint32(len(s.Local()))
	list := []info{
		{keyJobID, nspaceOf(s)},
		// Before what is of the session: the library of Debian loses the universe's size otherwise.
		{keySessionID, sessionOf(s)},
		{keyNodeMap, nodeMap},
		{keyProcMap, procMap},
		{keyMapping, pmi.Mapping(s.Ranks)},
		{keyUnivSize, uint32(max(s.Universe, s.Size))},
		{keyJobSize, uint32(s.Size)},
		{keyAppSize, uint32(s.Size)},
		{keyMaxProcs, uint32(s.Size)},
		{keyJobApps, uint32(1)},
		{keyNumNodes, uint32(len(s.Hosts))},
		{keyLocalSize, local},
		{keyNodeSize, local},
		{keyAppNum, uint32(0)},
		{keyAppLeader, rank(0)},
		{keyOffset, rank(0)},
		{keyNodeID, uint32(s.Node)},
		{keyHostname, s.Hosts[s.Node]},
		{keyLocalPeers, join(s.Local())},
		{keyLeader, rank(slices.Min(s.Local()))},
		{keyTmpdir, dir},
		{keyNspaceDir, dir},
		{keyCleaned, true},
	}
	for node, ranks := range s.Ranks {
		for i, r := range ranks {
			list = append(list, info{keyProcData, []info{
				{keyRank, rank(r)}, // it must stand first
				{keyGlobalRank, rank(r)},
				{keyAppRank, rank(r)},
				{keyAppNum, uint32(0)},
				{keyLocalRank, uint16(i)},
				{keyNodeRank, uint16(i)},
				{keyNodeID, uint32(node)},
				{keyHostname, s.Hosts[node]},
				{keySpawned, false},
			}})
		}
	}
	return list
}

// sessionOf is the number of the job.
func sessionOf(s *pmi.Setup) uint32 {
	job, _, _ := strings.Cut(s.Job, ".")
	n, err := strconv.ParseUint(job, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// check refuses a setup that would have the library read what is not there.
func check(s *pmi.Setup) error {
	if len(s.Hosts) != len(s.Ranks) {
		return fmt.Errorf("the setup names %d nodes, and the tasks of %d", len(s.Hosts), len(s.Ranks))
	}
	seen := make([]bool, s.Size)
	for node, ranks := range s.Ranks {
		for _, r := range ranks {
			if r < 0 || r >= s.Size || seen[r] {
				return fmt.Errorf("the setup has task %d of %d on node %d: it cannot be there", r, s.Size, node)
			}
			seen[r] = true
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return fmt.Errorf("the setup has task %d of %d on no node", i, s.Size)
	}
	if len(nspaceOf(s)) > maxNspace {
		most := maxNspace - len(nspaceOf(&pmi.Setup{}))
		return fmt.Errorf("the step's name %q has more than %d letters", s.Job, most)
	}
	return nil
}

// maxNspace leaves room for the server's own namespace.
const maxNspace = 240
