package preview

import (
	"fmt"
	"html"
	"io"
	"strings"
)

const htmlHead = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.6em 0 .3em; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; width: 100%%; } td { padding: .2em 1em .2em 0; vertical-align: top; }
td:first-child:not(:last-child) { font-family: ui-monospace, monospace; width: 22em; overflow-wrap: anywhere; }
</style></head><body>
<h1>%s</h1>
`

// HTML writes the report as a page without scripts or links.
func (r *Report) HTML(w io.Writer) error {
	var b strings.Builder
	title := html.EscapeString("Migration preview: " + r.title())
	fmt.Fprintf(&b, htmlHead, title, title)
	for _, s := range r.sections() {
		fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(s.title))
		if s.intro != "" {
			fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(s.intro))
		}
		b.WriteString("<table>\n")
		for _, row := range s.rows {
			b.WriteString("<tr>")
			for _, cell := range row {
				fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(cell))
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table>\n")
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
