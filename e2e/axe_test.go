package e2e

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
)

// axe is the program that judges whether everybody can use a page (testdata/axe/README.md).
var axe = sync.OnceValue(func() string {
	f, err := os.Open("testdata/axe/axe.min.js.gz")
	if err != nil {
		return ""
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return ""
	}
	return string(text)
})

// judge has axe look at the view that is seen: names, roles, contrast, landmarks, order of headings.
func (b *browser) judge(view string) {
	b.t.Helper()
	if axe() == "" {
		b.t.Fatal("testdata/axe/axe.min.js.gz cannot be read")
	}
	b.call("Runtime.evaluate", map[string]any{"expression": axe() + ";0"}, nil)
	var r struct {
		Result struct {
			Value []string
		}
		ExceptionDetails json.RawMessage
	}
	script := `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " +
		v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " (" + n.any.map((a) => a.message).join("; ") + ")").join(" | ")))`
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Errorf("%s: axe: %s", view, r.ExceptionDetails)
	}
	if len(r.Result.Value) > 0 {
		b.t.Errorf("%s: %d violations:\n%s", view, len(r.Result.Value), strings.Join(r.Result.Value, "\n"))
	}
}
