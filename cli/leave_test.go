package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestJoinToken gives a token by each way, and by none or two.
func TestJoinToken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full, empty, none := file("full", "  mst1.abc\n\n"), file("empty", "\n"), filepath.Join(dir, "none")
	for _, c := range []struct {
		name, env, want, err string
		args                 []string
	}{
		{name: "none"},
		{name: "an option", args: []string{"--token", "mst1.x"}, want: "mst1.x"},
		{name: "the environment", env: "mst1.e", want: "mst1.e"},
		{name: "a file", args: []string{"--token-file", full}, want: "mst1.abc"},
		{name: "two", args: []string{"--token", "mst1.x", "--token-file", full}, err: "give one of them"},
		{name: "an empty file", args: []string{"--token-file", empty}, err: empty + ": the file is empty"},
		{name: "no file", args: []string{"--token-file", none}, err: "--token-file: open " + none},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("MUSTER_TOKEN", c.env)
			got, said := "", ""
			app := &cli.App{Flags: tokenFlags(), Action: func(c *cli.Context) error {
				text, err := joinToken(c)
				if err != nil {
					said = err.Error()
				}
				got = text
				return nil
			}}
			if err := app.Run(append([]string{"muster"}, c.args...)); err != nil {
				t.Fatal(err)
			}
			if got != c.want || !strings.Contains(said, c.err) || (said != "") != (c.err != "") {
				t.Errorf("%q, %q; want %q, %q", got, said, c.want, c.err)
			}
		})
	}
}
