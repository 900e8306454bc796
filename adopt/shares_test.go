package adopt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestShares: both outputs of Slurm give the usage of each association, users before accounts.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"sshare", "Account|User|RawShares|RawUsage\nroot|||900\n root|root|1|0\n a||1|900\n  a|bob|1|300\n   b||1|600\n",
			"root  900, root root 0, a  900, a bob 300, b  600"},
		{"sshare -p -m", "Account|User|Partition|RawUsage|\na|bob|p|5|\n", "a bob 5"},
		{"scontrol", "Current Association Manager state\n\nClusterName=c Account=a UserName=bob(7) Partition=p ID=3\n" +
			"    UsageRaw/Norm/Efctv=12.50/0.1/0.2\n    GrpSubmitJobs=N(219) GrpWall=N(1.5)\n" +
			"    GrpTRESMins=cpu=10(2),billing=N(2),gres/gpu:h100=N(3)\nQOS=high(2)\n    UsageRaw=7.25\n", "a bob 12.5,   7.25"},
	} {
		list, err := ReadShares(strings.NewReader(c.text))
		var got []string
		for _, s := range list {
			got = append(got, fmt.Sprintf("%s %s %v", s.Account, s.User, s.Used.Raw))
		}
		if text := strings.Join(got, ", "); text != c.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", c.name, text, err, c.want)
		}
		if last := list[len(list)-1]; c.name == "scontrol" {
			u := list[0].Used
			tres := []cluster.Amount{{TRES: "cpu", N: 120}, {TRES: "gres/gpu:h100", N: 180}}
			if u.Wall != 90 || !slices.Equal(u.TRES, tres) || last.QOS != "high" || list[0].Partition != "p" {
				t.Errorf("%+v, %+v", list[0], last)
			}
		}
	}
	for text, want := range map[string]string{
		"":                                    "not the output",
		"hello\n":                             "not the output",
		"Account|User\n":                      "RawUsage is missing",
		"Account|User|RawUsage\na|b\n":        "2 fields",
		"Account|User|RawUsage\na|b|-1\n":     "line 2",
		"Account|User|RawUsage\na|b|NaN\n":    "not a usage",
		"ClusterName=c\n  UsageRaw=x\n":       "line 2",
		"QOS=q(1)\n  GrpTRESMins=cpu=N\n":     "not a usage",
		"QOS=q(1)\n  GrpWall=N(1e300) A=b\n":  "not a usage",
		strings.Repeat("x", 2<<20):            "too long",
		"Account|User|RawUsage\n" + "a||5x\n": "not a usage",
	} {
		if _, err := ReadShares(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}

// TestSetShares: the usage of what a cluster has is set from the bottom up; other lines are listed.
func TestSetShares(t *testing.T) {
	b := newBooks()
	b.bringIn(t, open(t, "22.05"), false)
	text, err := os.ReadFile(filepath.Join("../e2e/testdata/adopt/22.05", "sshare.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := ReadShares(strings.NewReader(unpacked(t, text) + "gone|zoe|1|0|5|0|0|0|0||\nnlp||1|0|5|0|0|0|0||\n"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	var refused bytes.Buffer
	a := Accounts{Refused: &refused, Send: func(changes []cluster.Change) error {
		for _, c := range changes {
			order = append(order, fmt.Sprintf("%s %s=%v", c.Assoc.Account, c.Assoc.User, c.Usage.Raw))
		}
		return nil
	}}
	report, err := a.SetShares(list, b.have)
	if want := (SharesReport{Lines: 18, Set: 16, Refused: 2}); report != want || err != nil {
		t.Errorf("%+v, %v", report, err)
	}
	if n := len(order); n != 16 || order[n-1] != "root =5539" || slices.Index(order, "nlp =4345") > slices.Index(order, "team-a =4796") {
		t.Errorf("order %v", order)
	}
	if text := refused.String(); !strings.Contains(text, "user zoe") || !strings.Contains(text, "another line") {
		t.Errorf("refused: %s", text)
	}
}
