package node

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/cast"
)

// chunks is a file as it is sent, in pieces of a few bytes.
func chunks(text string) []byte {
	var c cast.Chunks
	var b []byte
	for len(text) > 0 {
		n := min(len(text), 5)
		b = append(append(b, c.Head([]byte(text[:n]))...), text[:n]...)
		text = text[n:]
	}
	return append(b, c.End()...)
}

// told runs the process with what it is told, and returns its answers.
func told(t *testing.T, parts ...any) (answers []cast.Answer, rest string, err error) {
	t.Helper()
	var in, out bytes.Buffer
	for _, p := range parts {
		if raw, ok := p.([]byte); ok {
			in.Write(raw)
			continue
		}
		line, err := cast.Line(p)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(line)
	}
	p := &process{in: bufio.NewReader(&in), out: &out}
	err = p.serve()
	for r := bufio.NewReader(&out); ; {
		var a cast.Answer
		whole := out.String()
		if rerr := cast.ReadLine(r, &a); rerr != nil {
			left, _ := io.ReadAll(r)
			return answers, whole + string(left), err
		}
		answers = append(answers, a)
		if a.Size > 0 { // chunks follow
			left, _ := io.ReadAll(r)
			return answers, string(left), err
		}
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// TestPut: a file is there once all of it has arrived and it is wanted, and not before.
func TestPut(t *testing.T) {
	const text = "a text of some pieces\n"
	broken := chunks(text)
	broken[6] ^= 1
	for _, c := range []struct {
		what   string
		force  bool
		sent   []byte
		commit bool
		there  string // before
		want   string // after
		errors string // of the answers
	}{
		{"all", false, chunks(text), true, "", text, ",,"},
		{"in the place of another", true, chunks(text), true, "old", text, ",,"},
		{"there is another", false, nil, false, "old", "old", "file exists"},
		{"cut off", false, chunks(text)[:20], false, "", "", ",the file has not arrived whole: unexpected EOF"},
		{
			"cut off, in the place of another", true, chunks(text)[:20], false, "old", "old",
			",the file has not arrived whole: unexpected EOF",
		},
		{"broken", false, broken, true, "", "", ",the file has not arrived whole"},
		{"not wanted", true, chunks(text), false, "old", "old", ","},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		if c.there != "" {
			if err := os.WriteFile(file, []byte(c.there), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		parts := []any{
			cast.Order{
				Put: file, Force: c.force, Times: true,
				About: cast.About{Mode: 0o751, Accessed: 1e9, Modified: 2e9},
			},
		}
		if c.sent != nil {
			parts = append(parts, c.sent)
		}
		if c.commit {
			parts = append(parts, cast.Order{Commit: true})
		}
		answers, _, _ := told(t, parts...)
		var errs []string
		for _, a := range answers {
			errs = append(errs, a.Error)
		}
		got, _ := os.ReadFile(file)
		if string(got) != c.want || strings.Join(errs, ",") != c.errors {
			t.Errorf("%s: %q, %q", c.what, got, errs)
		}
		if n := names(t, dir); n != "f" && (n != "" || c.want != "") {
			t.Errorf("%s: left are %s", c.what, n)
		}
		if fi, err := os.Stat(file); c.want == text && (err != nil || fi.Mode() != 0o751 || fi.ModTime().UnixNano() != 2e9) {
			t.Errorf("%s: %v %v", c.what, fi, err)
		}
	}
}

// TestGet: a file comes whole, a folder is listed, and what is not there is told of.
func TestGet(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("what it holds"), 0o640); err != nil {
		t.Fatal(err)
	}
	answers, sent, err := told(t, cast.Order{Get: file})
	if err != nil || len(answers) != 1 || answers[0].Size != 13 || answers[0].Mode != 0o640 {
		t.Fatalf("%+v %v", answers, err)
	}
	var got bytes.Buffer
	if _, err := cast.ReadChunks(bufio.NewReader(strings.NewReader(sent)), &got); err != nil || got.String() != "what it holds" {
		t.Errorf("%q %v", got.String(), err)
	}
	answers, _, _ = told(t, cast.Order{Get: dir}, cast.Order{Get: dir + "/none"}, cast.Order{Remove: file})
	if len(answers) != 3 || answers[0].Error != "is a directory" || answers[1].Error != "no such file or directory" || answers[2].Error != "" {
		t.Errorf("%+v", answers)
	}
	if n := names(t, dir); n != "" {
		t.Errorf("left are %s", n)
	}
}

// TestFolderOfOthers: libraries go into a folder that is the user's alone, which may be there already; one that others
// can change is refused.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	own, open, link := filepath.Join(dir, "own"), filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	refused := func(path string) string {
		return path + " is no folder that its user alone may write: remove it, or send to another place"
	}
	want := []string{"", "", refused(open), refused(link)}
	orders := []any{cast.Order{Dir: own}, cast.Order{Dir: own}, cast.Order{Dir: open}, cast.Order{Dir: link}}
	if os.Geteuid() == 0 {
		other := filepath.Join(dir, "other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(other, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		want = append(want, refused(other))
		orders = append(orders, cast.Order{Dir: other})
	}
	answers, _, err := told(t, orders...)
	if err != nil || len(answers) != len(want) {
		t.Fatalf("%+v %v", answers, err)
	}
	for i, a := range answers {
		if a.Error != want[i] {
			t.Errorf("%+v: %q, want %q", orders[i], a.Error, want[i])
		}
	}
}
