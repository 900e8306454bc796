package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

const (
	init1  = "cmd=init pmi_version=1 pmi_subversion=1"
	inited = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
)

// spawns is a step of two nodes that may start further ones; their requests come by the channel.
func spawns(t *testing.T) (*testStep, chan *Spawn, chan *testStep) {
	s := newStep(t, []int{0}, []int{1})
	asked, children := make(chan *Spawn, 9), make(chan *testStep, 9)
	s.hub.Starts(func(sp *Spawn, done func(string, error)) {
		asked <- sp
		if sp.Programs[0].Argv[0] == "/no/such" {
			done("", errors.New("the tasks have not begun"))
			return
		}
		begun := make(chan bool)
		child := func(to []io.Writer, aborted func(Aborted)) *Hub {
			return s.hub.Child(to, aborted, "7.0", sp, func() { close(begun) })
		}
		children <- newStepOf(t, child, (*Server).askBirth, []int{0, 2}, []int{1})
		<-begun
		done("7.1", nil)
	})
	return s, asked, children
}

// one is a spawn of PMI-1 of two tasks, and what they find.
const one = "mcmd=spawn\nnprocs=2\nexecname=/bin/a\ntotspawns=2\nspawnssofar=1\narg1=two words\narg2=x=y\nargcnt=2\n" +
	"preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$port#1 2$\n" +
	"info_num=1\ninfo_key_0=wdir\ninfo_val_0=/a b\nendcmd\n" +
	"mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\n" +
	"preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$port#1 2$\ninfo_num=0\nendcmd"

// spawned is what the tests ask for.
func spawned(rank int) *Spawn {
	return &Spawn{Rank: rank, Preput: []string{"PARENT_ROOT_PORT_NAME", "tag#0$port#1 2$"}, Programs: []Program{
		{Tasks: 2, Argv: []string{"/bin/a", "two words", "x=y"}, Info: []string{"wdir", "/a b"}},
		{Tasks: 1, Argv: []string{"b"}, Info: nil},
	}}
}

// same compares spawns; there is no difference between none and no list.
func same(t *testing.T, got, want *Spawn) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(got.Programs) != fmt.Sprint(want.Programs) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
}

// TestSpawn1: tasks of PMI-1 ask for further ones of two programs, which find what was put for them, and names that
// their parents have published; the answer comes once all have begun.
func TestSpawn1(t *testing.T) {
	s, asked, children := spawns(t)
	k := s.tasks[1]
	k.ask1(init1, inited)
	k.ask1("cmd=get_appnum", "cmd=appnum appnum=0")
	k.ask1("cmd=publish_name service=svc port=p", "cmd=publish_result rc=0 info=ok")
	k.say(one + "\n")
	same(t, <-asked, spawned(1))
	child := <-children
	child.each(func(c *task) {
		c.ask1(init1, inited)
		c.ask1("cmd=get_appnum", fmt.Sprintf("cmd=appnum appnum=%d", c.rank/2))
		c.ask1("cmd=get kvsname=7.0 key=PARENT_ROOT_PORT_NAME",
			"cmd=get_result rc=0 msg=success value=tag#0$port#1 2$")
		c.ask1("cmd=lookup_name service=svc", "cmd=lookup_result rc=0 info=ok port=p")
		c.ask1("cmd=barrier_in", "cmd=barrier_out rc=0")
	})
	k.hear1("cmd=spawn_result rc=0 jobid=7.1")
	child.tasks[2].ask1("cmd=publish_name service=back port=q", "cmd=publish_result rc=0 info=ok")
	k.ask1("cmd=lookup_name service=back", "cmd=lookup_result rc=0 info=ok port=q")
	k.ask1("mcmd=spawn\nnprocs=1\nexecname=/no/such\ntotspawns=1\nendcmd",
		"cmd=spawn_result rc=-1 msg=the_tasks_have_not_begun")
	if said := s.said.String(); said != "error: mpi/pmi2: task 1: MPI_Comm_spawn: the tasks have not begun\n" {
		t.Errorf("the servers say %q", said)
	}
	if child.said.Len() > 0 {
		t.Errorf("the new servers say %q", child.said.String())
	}
}

// TestSpawn2: the same by PMI-2.
func TestSpawn2(t *testing.T) {
	s, asked, children := spawns(t)
	k := s.tasks[0]
	const first = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0"
	k.ask1("cmd=init pmi_version=2 pmi_subversion=0", first)
	text := "cmd=spawn;thrid=7;ncmds=2;preputcount=1;ppkey0=PARENT_ROOT_PORT_NAME;ppval0=tag#0$port#1 2$;" +
		"subcmd=/bin/a;maxprocs=2;argc=2;argv0=two words;argv1=x=y;infokeycount=1;infokey0=wdir;infoval0=/a b;" +
		"subcmd=b;maxprocs=1;argc=0;infokeycount=0;"
	k.say(fmt.Sprintf("%6d%s", len(text), text))
	same(t, <-asked, spawned(0))
	child := <-children
	child.each(func(c *task) {
		c.ask1("cmd=init pmi_version=2 pmi_subversion=0", first)
		c.ask2("cmd=fullinit;pmijobid=7.1;", fmt.Sprintf("cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;"+
			"rank=%d;size=3;appnum=%d;debugged=FALSE;pmiverbose=FALSE;spawner-jobid=7.0;", c.rank, c.rank/2))
		c.ask2("cmd=kvs-get;key=PARENT_ROOT_PORT_NAME;",
			"cmd=kvs-get-response;rc=0;found=TRUE;value=tag#0$port#1 2$;")
		c.ask2("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;")
	})
	k.hear2("cmd=spawn-response;thrid=7;rc=0;jobid=7.1;")
	for text, want := range map[string]string{
		"subcmd=/no/such;maxprocs=1;":         "the tasks have not begun",
		"subcmd=a;maxprocs=0;":                `what is to be started cannot be read: "0" tasks of program "a"`,
		"subcmd=a;maxprocs=1;argc=999999;":    `what is to be started cannot be read: argc="999999"`,
		"preputcount=-1;subcmd=a;maxprocs=1;": `what is to be started cannot be read: preputcount="-1"`,
		"ncmds=0;":                            "what is to be started cannot be read: 0 programs, 0 tasks",
	} {
		k.ask2("cmd=spawn;"+text, "cmd=spawn-response;rc=14;errmsg="+want+";")
	}
}

// TestSpawnRefused: a hub that starts nothing says so in words, and so does a task's server.
func TestSpawnRefused(t *testing.T) {
	s := newStep(t, []int{0})
	k := s.tasks[0]
	k.ask1(init1, inited)
	k.ask1("mcmd=spawn\nnprocs=2\nexecname=/bin/true\nendcmd",
		"cmd=spawn_result rc=-1 msg=MPI_Comm_spawn_cannot_be_done")
	if got := s.said.String(); got != "error: mpi/pmi2: task 0: MPI_Comm_spawn: cannot be done\n" {
		t.Errorf("the server says %q", got)
	}
}

// TestSpawnOldServer: a server that does not ask what its parent has put is none for such a step.
func TestSpawnOldServer(t *testing.T) {
	h := NewHub(nil, nil).Child([]io.Writer{io.Discard}, nil, "7.0", spawned(0), func() {})
	defer h.Close()
	err := h.take(0, Message{Kind: Fence, Key: "1"})
	if err == nil || !strings.Contains(err.Error(), "node 0 knows no MPI_Comm_spawn: upgrade its client") {
		t.Error(err)
	}
}

// FuzzSpawn: what servers pass on is read without harm, and what was read is written alike.
func FuzzSpawn(f *testing.F) {
	f.Add(spawned(3).encode())
	f.Add(appendTexts(nil, "0", "1", "a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := readTexts(b)
		if err != nil {
			return
		}
		s, err := readSpawn(texts)
		if err != nil {
			return
		}
		texts, _ = readTexts(s.encode())
		again, err := readSpawn(texts)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v, then %+v, %v", s, again, err)
		}
		if !bytes.Equal(s.encode(), again.encode()) {
			t.Errorf("written as %q, then %q", s.encode(), again.encode())
		}
	})
}
