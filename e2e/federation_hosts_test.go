package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Hosts of a cluster of TestFederationHosts: three servers and a client.
const clusterHosts = 4

// awayFor is how long the clusters lose each other's packets: longer than a call between them waits for an answer.
const awayFor = 4 * time.Second

// ownAnswer is how long a command of a cluster may take that needs nothing of the other, which is away.
const ownAnswer = 3 * time.Second

// unionOf are two clusters of three servers each, on hosts of their own, that are a federation.
type unionOf struct {
	t      *testing.T
	hosts  *hosts
	a, b   *group
	starts string // each job writes its number there
	ids    []string
}

func newUnion(t *testing.T) *unionOf {
	t.Helper()
	h, err := newHosts(t, 2*clusterHosts)
	if err != nil {
		t.Skip("no network namespaces: ", err)
	}
	u := &unionOf{t: t, hosts: h}
	for i, at := range []**group{&u.a, &u.b} {
		text := fmt.Sprintf("ClusterName=%s\nPartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE\n",
			[]string{"alpha", "beta"}[i])
		conf := []string{"--conf", confFile(t, text)}
		*at = (&group{t: t, hosts: h, before: i * clusterHosts, paged: true}).begin(conf...).fill(1, conf...)
	}
	pages := func(g *group) string {
		return "http://" + g.pageAt(1) + ",http://" + g.pageAt(2) + ",http://" + g.pageAt(3)
	}
	token := strings.TrimSpace(u.b.must("s1", "muster", "peer", "invite", "alpha", "--root"))
	u.a.must("s2", "muster", "peer", "add", "--root", "--own", pages(u.a), "--token", token, pages(u.b))
	u.a.wait("s3 to know the peer", func() bool {
		return strings.Contains(u.a.must("s3", "muster", "peer", "ls"), "beta")
	})
	u.a.must("s3", "sacctmgr", "-i", "add", "federation", "fed", "clusters=alpha,beta")
	u.starts = filepath.Join(u.a.dir, "starts")
	if err := os.WriteFile(u.starts, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return u
}

// apart has all hosts of one cluster lose the packets of the other's; together ends that.
func (u *unionOf) apart()    { u.eachPair(u.hosts.part) }
func (u *unionOf) together() { u.eachPair(u.hosts.join) }

func (u *unionOf) eachPair(do func(a, b int)) {
	for a := 1; a <= clusterHosts; a++ {
		for b := 1; b <= clusterHosts; b++ {
			do(a, clusterHosts+b)
		}
	}
}

// submit submits n jobs of a length at a cluster.
func (u *unionOf) submit(g *group, n int, length string) {
	u.t.Helper()
	for range n {
		began := time.Now()
		u.ids = append(u.ids, g.must("s1", "sbatch", "--parsable", "--exclusive", "-o", "/dev/null", "--wrap",
			fmt.Sprintf("echo $SLURM_JOB_ID >> %s; sleep %s", u.starts, length)))
		if took := time.Since(began); took > patience(ownAnswer) {
			u.t.Errorf("a submission took %v", took)
		}
	}
}

// idle waits until a cluster has no more jobs that are not over.
func (u *unionOf) idle(g *group) {
	u.t.Helper()
	g.wait("all jobs to be over", func() bool {
		return g.must("s1", "squeue", "-h", "-t", "pending,running,completing", "-o", "%i %T %r") == ""
	})
}

// TestFederationHosts: two clusters on hosts of their own lose each other's packets without a word while jobs are
// submitted, granted, ended and cancelled. Each goes on with its own meanwhile, and no job runs twice.
func TestFederationHosts(t *testing.T) {
	t.Parallel()
	u := newUnion(t)
	cases := map[string]func(){
		"submit": func() {
			u.submit(u.a, 4, "0.2")
			u.apart()
			u.submit(u.a, 4, "0.2")
			u.submit(u.b, 4, "0.2")
		},
		"grant": func() {
			u.submit(u.a, 12, "0.5") // some at a time start, here and there
			u.apart()
			if out, _, code := u.a.run("s1", "squeue", "-M", "beta"); code == 0 {
				t.Errorf("beta answers, and is to be away: %s", out)
			}
		},
		"end": func() {
			u.submit(u.b, 4, "2")
			u.apart()
		},
		"cancel": func() {
			u.submit(u.a, 8, "5")
			last := u.ids[len(u.ids)-1]
			u.apart()
			u.a.must("s2", "scancel", last)
		},
	}
	for name, begin := range cases {
		t.Run(name, func(t *testing.T) {
			begin()
			time.Sleep(awayFor) // that is the time without the other
			u.together()
			u.idle(u.a)
			u.idle(u.b)
			onlyOnce(t, u.a.at["s1"], u.ids, u.starts)
		})
	}
}
