package control

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// TestReservationWords reads the words of reservations of cores, with the complaints of Slurm 22.05.
func TestReservationWords(t *testing.T) {
	const more = ".  No reservation"
	for _, c := range []struct{ words, want string }{
		{"corecnt=4", "0 [4]"}, {"corecnt=4,6", "0 [4 6]"}, {"corecnt=4,", "0 [4]"}, {"corecnt=", "0 []"},
		{"core=4", "0 [4]"},
		{"nodecnt=2 corecnt=5", "2 [5]"}, {"corecnt=5 nodecnt=2", "2 [5]"},
		{"nodecnt=2 nodes=n1", "0 [] SPEC_NODES"}, {"nodes=n1 tres=node=2", "0 [] SPEC_NODES"},
		{"update: nodecnt=2 nodes=n1", "2 [] SPEC_NODES"},
		{"update: nodecnt=3 tres=node=2", "2 [] SPEC_NODES"}, {"update: nodes=n1", "0 [] SPEC_NODES"},
		{"tres=cpu=4", "0 [4]"}, {"tres=cpu=4,node=2", "2 [4]"}, {"tres=node=2,cpu=4", "2 [4]"},
		{"tres=cpu=2,3,1,node=3", "3 [2 3 1]"},
		{"tres=cpu=4,license/a=3", "0 [4] a:3"}, {"tres=", "0 []"}, {"tres=cpu=4 corecnt=6", "0 [6]"},
		{"corecnt=6 tres=cpu=4", "0 [4]"},
		{"corecnt=4 flags=FIRST_CORES,purge", "0 [4] FIRST_CORES,PURGE_COMP=00:05:00"},
		{
			"flags=overlap,first_cores,static,time_float,purge_comp,no_hold,magnetic,flex,ignore",
			"0 [] FLEX,OVERLAP,IGNORE_JOBS,STATIC,FIRST_CORES,TIME_FLOAT,PURGE_COMP=00:05:00,NO_HOLD_JOBS_AFTER_END,MAGNETIC",
		},
		{"corecnt=abc", "Invalid core count abc"}, {"corecnt=4x", "Invalid core count 4x"},
		{"nodecnt=abc", "Invalid node count abc"},
		{"corecnt+=2", "The +=/-= notation is not supported when updating corecnt" + more},
		{"tres+=cpu=2", "The +=/-= notation is not supported when updating tres" + more},
		{"tres=cpu=abc", "invalid TRES cpu value 'abc'"}, {"tres=cpu", "invalid TRES 'cpu'"},
		{"tres=node=x", "Invalid TRES node count x"},
		{"tres=mem=4", "TRES type 'mem' not supported with reservations"},
		{"nodes=n1 tres=gres/gpu=4", "0 [] SPEC_NODES 4 GPUs"}, {"tres=gres/gpu", "0 [] 1 GPUs"},
		{"tres=gres/gpu:h100=4,cpu=8,node=2", "2 [8] 4 h100 GPUs"}, {"tres=GRES/gpu:h100:4", "0 [] 4 h100 GPUs"},
		{"nodecnt=2 trespernode=gres/gpu:2", "2 [] 2 GPUs per node"},
		{"TRESPerNode=cpu=4,gres/gpu=2 nodecnt=2", "2 [4] 2 GPUs per node"},
		{"tresp=gres/gpu=2,node=3", "3 [] 2 GPUs per node"}, {"nodecnt=2 trespernode=cpu=4", "2 [4] per node"},
		{"tres=gres/gpu=4,license/a=3", "0 [] a:3 4 GPUs"},
		{"tres=gres/gpu=0", "invalid TRES 'gres/gpu=0': reserve 1 GPU or more"},
		{"tres+=gres/gpu=1", "The +=/-= notation is not supported when updating tres" + more},
		{"trespernode+=gres/gpu=1", "The +=/-= notation is not supported when updating trespernode" + more},
		{"trespernode=license/a=1", "TRES type 'license/a' not supported with reservations"},
		{"tres=cpu=4 TRESPerNode=gres/gpu=2", "Parameter TRESPerNode=gres/gpu=2 specified more than once"},
		{"corecnt=4 trespernode=gres/gpu=2", coresOfAll + more},
		{"trespernode=gres/gpu=2 corecnt=4", coresOfAll + more},
		{
			"update: tres=gres/gpu=2",
			"GPUs of a reservation cannot be changed: tres=gres/gpu=2; delete it and create another" + more,
		},
		{"flags-=first_cores", "Error parsing flags -first_cores" + more},
		{"watts=3", "watts=3 is not supported by muster: there is no power cap" + more},
		{"maxstartdelay=3", "0 [] 3m0s"}, {"MaxStartDelay=4:61", "0 [] 5m1s"},
		{"maxst=1-0", "0 [] 24h0m0s"}, {"maxstartdelay=0", "0 []"},
		{"maxstartdelay=", "Invalid duration maxstartdelay=" + more},
		{"MaxStartDelay=-1", "Invalid duration MaxStartDelay=-1" + more},
		{"maxstartdelay=UNLIMITED", "Invalid duration maxstartdelay=UNLIMITED" + more},
		{"partitionname+=x", "The +=/-= notation is not supported when updating partitionname" + more},
		{"nodecnt+=1", "The +=/-= notation is not supported when updating nodecnt" + more},
		{"users=root users=root", "Parameter users=root specified more than once"},
		{"accounts=a acc=b", "Parameter acc=b specified more than once"},
		{"flags=spec_nodes", "Error parsing flags spec_nodes" + more},
		{"flags=static_alloc", "0 [] STATIC"}, {"flags=mai", "0 [] MAINT"},
		{"flags=maint flags=daily", "0 [] MAINT,DAILY"},
		{
			"starttime=2026-01-01 endtime=2026-01-02 duration=5",
			"StartTime + Duration does not equal EndTime" + more,
		},
		{"MaxStartDelay+=1", "The +=/-= notation is not supported when updating MaxStartDelay" + more},
	} {
		words, update := strings.CutPrefix(c.words, "update: ")
		list, _ := front.Settings(strings.Fields(words))
		e := &resvEdit{now: time.Now(), exists: update, c: &control{}}
		if update {
			e.Nodes, e.Flags = []cluster.NodeName{"n1", "n2", "n3"}, cluster.ResvSpecNodes|cluster.ResvAllNodes
		}
		got := e.read(list)
		switch {
		case got == "":
			got = fmt.Sprint(e.Count, " ", e.Cores)
			if e.MaxStartDelay > 0 {
				got += " " + e.MaxStartDelay.String()
			}
			for _, text := range []string{e.Licenses, show.ResvText(&e.Reservation), gpusText(e)} {
				if text != "" {
					got += " " + text
				}
			}
		case !e.plain:
			got += more
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.words, got, c.want)
		}
	}
}

// gpusText is the GPUs that are asked for.
func gpusText(e *resvEdit) string {
	var words []string
	for _, g := range e.GRES {
		words = append(words, strconv.FormatInt(g.Count, 10))
		if g.Type != "" {
			words = append(words, g.Type)
		}
		words = append(words, "GPUs")
	}
	if e.PerNode {
		words = append(words, "per node")
	}
	return strings.Join(words, " ")
}

// TestReservationUpdates: flags of one that there is are added to, and a - before a name takes it away, as in Slurm.
func TestReservationUpdates(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"flags=weekly", "OVERLAP,WEEKLY,PURGE_COMP=00:05:00 [a b]"},
		{"flags=-overlap,daily", "DAILY,PURGE_COMP=00:05:00 [a b]"},
		{"flags=", "OVERLAP,PURGE_COMP=00:05:00 [a b]"},
		{"flags-=purge_comp", "OVERLAP [a b]"},
		{"users=-a", "OVERLAP,PURGE_COMP=00:05:00 [b]"}, {"users=-x", "OVERLAP,PURGE_COMP=00:05:00 [a b]"},
		{"users=-b,-a", "OVERLAP,PURGE_COMP=00:05:00 []"},
		{"users=root", "OVERLAP,PURGE_COMP=00:05:00 [root]"}, {"users-=a", "OVERLAP,PURGE_COMP=00:05:00 [b]"},
	} {
		list, _ := front.Settings(strings.Fields(c.words))
		e := &resvEdit{now: time.Now(), exists: true, c: &control{}}
		e.Flags, e.PurgeAfter, e.Users = cluster.ResvOverlap, purgeDefault, []string{"a", "b"}
		bad := e.read(list)
		if got := fmt.Sprint(show.ResvText(&e.Reservation), " ", e.Users); bad != "" || got != c.want {
			t.Errorf("%s: %s, %q, want %s", c.words, got, bad, c.want)
		}
	}
}

// TestReservationOfCores: show tells which cores it is, as Slurm 22.05 does.
func TestReservationOfCores(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 13, 43, 0, time.Local)
	r := &cluster.Reservation{Name: "a", Start: start, End: start.Add(time.Hour),
		Nodes: []cluster.NodeName{"n2", "n3"}, Users: []string{"root"}, Partition: "train",
		Flags:         cluster.ResvFlex | cluster.ResvSpecNodes | cluster.ResvFirstCores,
		MaxStartDelay: 24*time.Hour + 301*time.Second}
	ids := []cluster.IDSet{cluster.RangeIDSet(0, 3), cluster.RangeIDSet(0, 5)}
	for oneLine, want := range map[bool]string{
		false: `ReservationName=a StartTime=2026-11-22T12:13:43 EndTime=2026-11-22T13:13:43 Duration=01:00:00
   Nodes=n[2-3] NodeCnt=2 CoreCnt=10 Features=(null) PartitionName=train Flags=FLEX,SPEC_NODES,FIRST_CORES
     NodeName=n2 CoreIDs=0-3
     NodeName=n3 CoreIDs=0-5
   TRES=cpu=20
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=1-00:05:01

`,
		true: `ReservationName=a StartTime=2026-11-22T12:13:43 EndTime=2026-11-22T13:13:43 Duration=01:00:00 Nodes=n[2-3] NodeCnt=2 CoreCnt=10 Features=(null) PartitionName=train Flags=FLEX,SPEC_NODES,FIRST_CORES   NodeName=n2 CoreIDs=0-3   NodeName=n3 CoreIDs=0-5 TRES=cpu=20 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=1-00:05:01
`} {
		var b bytes.Buffer
		c := &control{out: bufio.NewWriter(&b), oneLine: oneLine}
		c.reservationRecord(r, start.Add(-time.Minute), 10, 20, ids)
		_ = c.out.Flush()
		if b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), want)
		}
	}
}

// TestReservationLength: duration+= and duration-= change how long a reservation is.
func TestReservationLength(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for words, want := range map[string]time.Duration{
		"duration=30": 30 * time.Minute, "duration+=30": 90 * time.Minute, "duration-=1:00": 59 * time.Minute,
	} {
		list, _ := front.Settings([]string{words})
		e := &resvEdit{now: start, exists: true, c: &control{}}
		e.Start, e.End = start, start.Add(time.Hour)
		if bad := e.read(list); bad != "" || e.End.Sub(e.Start) != want {
			t.Errorf("%s: %q, %v, want %v", words, bad, e.End.Sub(e.Start), want)
		}
	}
}
