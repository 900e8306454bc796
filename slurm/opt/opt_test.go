package opt

import (
	"slices"
	"strings"
	"testing"
)

type got struct{}

var rows = [][]Option[got]{{
	{Long: "account", Short: 'A', Arg: Required, On: All, Env: "ACCOUNT"},
	{Long: "array", Short: 'a', Arg: Required, On: Sbatch},
	{Long: "exclusive", Arg: Optional, On: All, Env: "EXCLUSIVE"},
	{Long: "immediate", Short: 'I', Arg: Optional, On: Srun},
	{Long: "ntasks-per-node", Arg: Required, On: All},
	{Long: "nodes", Short: 'N', Arg: Required, On: All, Env: "srun=SLURM_NNODES srun=SLURM_JOB_NUM_NODES"},
	{Long: "tasks-per-node", Arg: Required, On: All, Alias: "ntasks-per-node"},
	{Long: "hold", Short: 'H', On: All, Env: "HOLD"},
	{Long: "verbose", Short: 'v', On: All},
}, {
	{Long: "newest", On: All, Newer: true},
	{Long: "arrow", On: All, Newer: true},
}}

func TestParse(t *testing.T) {
	const try = "\nTry \"sbatch --help\" for more information"
	for _, c := range []struct{ in, want, rest, err string }{
		{in: "-N4 -A x job -H", want: "nodes=4 account=x", rest: "job -H"},
		{in: "-vvN 4 --nodes=5 -- -x", want: "verbose verbose nodes=4 nodes=5", rest: "-x"},
		{in: "--exclusive job", want: "exclusive", rest: "job"},
		{in: "--exclusive=user -", want: "exclusive=user", rest: "-"},
		{in: "--acc=x --acco y", want: "account=x account=y"},
		{in: "--tasks-per-node=3 --tasks 4", want: "ntasks-per-node=3 ntasks-per-node=4"},
		{in: "--arr=1", want: "array=1"},
		{in: "--newe", want: "newest"},
		{in: "-A", err: "sbatch: option requires an argument -- 'A'" + try},
		{in: "-I", err: "sbatch: invalid option -- 'I'" + try},
		{in: "-vq", want: "verbose", err: "sbatch: invalid option -- 'q'" + try},
		{in: "--account", err: "sbatch: option '--account' requires an argument" + try},
		{in: "--hold=1", err: "sbatch: option '--hold' doesn't allow an argument" + try},
		{in: "--x=y", err: "sbatch: unrecognized option '--x=y'" + try},
		{in: "--a=1", err: "sbatch: option '--a=1' is ambiguous; possibilities: '--account' '--array'" + try},
	} {
		p := Parser[got]{Prog: Sbatch, Rows: rows}
		found, rest, err := p.Parse(strings.Fields(c.in))
		text := ""
		if err != nil {
			text, rest = err.Error(), nil
		}
		if w := words(found); w != c.want || text != c.err || strings.Join(rest, " ") != c.rest {
			t.Errorf("%s: got %q, rest %q, error %q", c.in, w, rest, text)
		}
	}
}

func words(found []Found[got]) string {
	var list []string
	for _, f := range found {
		w := f.Row.Long
		if f.Given {
			w += "=" + f.Value
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}

func TestOptionalShort(t *testing.T) {
	p := Parser[got]{Prog: Srun, Rows: rows}
	found, rest, err := p.Parse([]string{"-I", "-I60", "x"})
	if w := words(found); w != "immediate immediate=60" || !slices.Equal(rest, []string{"x"}) || err != nil {
		t.Errorf("got %q %q %v", w, rest, err)
	}
}

func TestEnv(t *testing.T) {
	for _, c := range []struct {
		prog Prog
		env  map[string]string
		want string
	}{
		{Sbatch, map[string]string{"SBATCH_ACCOUNT": "a", "SLURM_ACCOUNT": "b", "SLURM_NNODES": "2"}, "account=a"},
		{
			Srun, map[string]string{"SLURM_ACCOUNT": "b", "SLURM_NNODES": "2", "SLURM_JOB_NUM_NODES": "3"},
			"account=b nodes=2 nodes=3",
		},
		{Salloc, map[string]string{"SALLOC_HOLD": "", "SALLOC_EXCLUSIVE": "user"}, "exclusive=user hold"},
		{Salloc, map[string]string{"SALLOC_HOLD": "yes"}, "hold=yes"},
		{Salloc, map[string]string{"SALLOC_HOLD": "0"}, ""},
		{Salloc, map[string]string{"SALLOC_HOLD": "no"}, ""},
	} {
		p := Parser[got]{Prog: c.prog, Rows: rows}
		found := p.Env(func(n string) (string, bool) { v, ok := c.env[n]; return v, ok })
		if w := words(found); w != c.want {
			t.Errorf("%v %v: got %q, want %q", c.prog.Name(), c.env, w, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		in string
		n  int
		ok bool
	}{
		{"4", 4, true}, {"+4", 4, true}, {" 4", 4, true}, {"-1", -1, true},
		{"99999999999", 1<<31 - 1, true}, {"4k", 0, false}, {"", 0, false},
	} {
		if n, ok := Number(c.in); n != c.n || ok != c.ok {
			t.Errorf("Number(%q) = %d, %v", c.in, n, ok)
		}
	}
}

// TestAutocomplete: every program lists its options that begin with a word, an argument's with "=".
func TestAutocomplete(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"--autocomplete=--acc"}, "--account="},
		{[]string{"--autocomplete", "--nodes"}, "--nodes="},
		{[]string{"--autocomplete=nosuch"}, ""},
	} {
		p := Parser[got]{Prog: Srun, Rows: rows}
		_, _, err := p.Parse(c.argv)
		if u, ok := err.(*UsageError); !ok || !u.Stdout || u.Code != 0 || u.Error() != c.want {
			t.Errorf("%q: %#v, want %q", c.argv, err, c.want)
		}
	}
	p := Parser[got]{Prog: Srun, Rows: rows}
	_, _, err := p.Parse([]string{"--autocomplete"})
	if err == nil || !strings.Contains(err.Error(), "requires an argument") {
		t.Errorf("without an argument: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-N4\x00--acc=x\x00--\x00y")
	f.Fuzz(func(t *testing.T, s string) {
		argv := strings.Split(s, "\x00")
		p := Parser[got]{Prog: Srun, Rows: rows}
		_, rest, err := p.Parse(argv)
		if err == nil && len(rest) > len(argv) {
			t.Fatal("more words left than there were")
		}
	})
}
