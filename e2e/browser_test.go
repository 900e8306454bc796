package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browserTime is how long one command to the browser may take.
const browserTime = time.Minute

// browser is a Chromium without a screen, driven over two pipes (the DevTools protocol, messages that end with a
// zero byte).
type browser struct {
	t       *testing.T
	in      io.Writer
	out     chan message
	id      int
	session string
	said    []string // errors of the console and the browser
	asked   []string // addresses that pages asked for
	loaded  bool
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct{ Message string }
}

// startBrowser starts one, nil where there is none.
func startBrowser(t *testing.T, dir string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Log("no chromium: views are not looked at in a browser")
		return nil
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*, EXCLUDE localhost", "--user-data-dir="+filepath.Join(dir, "browser"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, in: in, out: make(chan message, 1000)}
	go func() {
		defer close(b.out)
		for r := bufio.NewReaderSize(out, 1<<20); ; {
			text, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) == nil {
				b.out <- m
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		out.Close()
		for end := time.Now().Add(browserTime); syscall.Kill(-cmd.Process.Pid, 0) == nil &&
			time.Now().Before(end); { // its children write to dir
			time.Sleep(10 * time.Millisecond)
		}
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call makes one command and notes what the browser tells meanwhile.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	text, err := json.Marshal(map[string]any{"id": b.id, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		text, err = json.Marshal(map[string]any{"id": b.id, "method": method, "params": params})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.next(method)
		if m.ID != b.id {
			continue
		}
		if m.Error != nil && strings.Contains(m.Error.Message, "navigated") { // the page went while it was asked
			return
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// next is the next message; events are noted.
func (b *browser) next(what string) message {
	b.t.Helper()
	select {
	case m, ok := <-b.out:
		if !ok {
			b.t.Fatalf("%s: the browser has ended", what)
		}
		var p struct {
			Request struct{ URL string }
			Entry   struct{ Level, Text string }
			Type    string
		}
		_ = json.Unmarshal(m.Params, &p) // other events have other fields
		switch m.Method {
		case "Network.requestWillBeSent":
			b.asked = append(b.asked, p.Request.URL)
		case "Log.entryAdded":
			if p.Entry.Level == "error" || p.Entry.Level == "warning" {
				b.said = append(b.said, p.Entry.Text)
			}
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			b.said = append(b.said, string(m.Params))
		case "Page.loadEventFired":
			b.loaded = true
		}
		return m
	case <-time.After(patience(browserTime)):
		b.t.Fatalf("%s: no answer in %v", what, browserTime)
	}
	return message{}
}

// open goes to a page, in a width and a color scheme.
func (b *browser) open(url string, width int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800,
		"deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.loaded = false
	var went struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": url}, &went)
	if went.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, went.ErrorText)
	}
	for !b.loaded {
		b.next(url)
	}
}

// run evaluates a script that gives a list of texts.
func (b *browser) run(script string) (list []string) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value []string }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s", r.ExceptionDetails)
	}
	return r.Result.Value
}

// seen evaluates a script that gives one text; "" while the browser goes from one page to the next.
func (b *browser) seen(script string) string {
	b.t.Helper()
	if list := b.run("[" + script + "]"); len(list) > 0 {
		return list[0]
	}
	return ""
}

// picture takes a picture of what is seen, with 256 colors at most.
func (b *browser) picture() []byte {
	b.t.Helper()
	var r struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	raw, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(full)); err != nil {
		b.t.Fatal(err)
	}
	return out.Bytes()
}

// paletted keeps the colors that most of a picture has.
func paletted(m image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(m.At(x, y)).(color.RGBA) }
	box := m.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var p color.Palette
	for _, c := range most[:min(len(most), 128)] {
		p = append(p, c)
	}
	out, index := image.NewPaletted(box, p), map[color.RGBA]uint8{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, ok := index[c]
			if !ok {
				i = uint8(p.Index(c))
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}

// faults is a script that lists what people who cannot see well, use no mouse or hold a phone would stumble over:
// inputs without a label, pictures without a text, tables without heads, text of little contrast, pages wider than
// the screen.
const faults = `(() => {
  const out = [], lum = (c) => { const f = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
  const rgb = (s) => { const srgb = /color\(srgb/.test(s), n = (s.match(/[\d.]+/g) || []).map(Number); return srgb ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1]; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255]; };
  const name = (e) => e.outerHTML.slice(0, 90);
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea")) if (!e.labels?.length && !e.ariaLabel) out.push("no label: " + name(e));
  for (const e of document.querySelectorAll("svg, img")) if (e.getAttribute("aria-hidden") !== "true" && !(/^(img|group)$/.test(e.getAttribute("role")) && e.ariaLabel)) out.push("no text: " + name(e));
  for (const e of document.querySelectorAll("table")) if (!e.querySelector("th[scope]")) out.push("no heads: " + name(e));
  for (const e of document.querySelectorAll("a[href], button")) if (!e.textContent.trim() && !e.ariaLabel) out.push("no name: " + name(e));
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, st = getComputedStyle(e);
    if (!walk.currentNode.data.trim() || e.closest(".hide, .skip, title") || st.visibility === "hidden") continue;
    const a = lum(rgb(e.closest("svg") ? st.fill : st.color)), b = lum(back(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < (parseFloat(st.fontSize) >= 24 ? 3 : 4.5)) out.push("contrast " + ratio.toFixed(1) + ": " + name(e));
  }
  if (document.documentElement.scrollWidth > innerWidth) out.push("wider than the screen: " + document.documentElement.scrollWidth + " of " + innerWidth);
  if (document.querySelectorAll("h1").length !== 1 || !document.documentElement.lang || !document.querySelector("main")) out.push("no outline");
  return [...new Set(out)].slice(0, 10);
})()`

// look opens a page and reports all that is wrong with it.
func (b *browser) look(base, path string, width int, scheme string) {
	b.t.Helper()
	b.said, b.asked = nil, nil
	b.open(base+path, width, scheme)
	for _, f := range b.run(faults) {
		b.t.Errorf("%s, %s, %d wide: %s", path, scheme, width, f)
	}
	for _, s := range b.said {
		b.t.Errorf("%s: the browser says %s", path, s)
	}
	for _, a := range b.asked {
		if !strings.HasPrefix(a, base+"/") {
			b.t.Errorf("%s asks %s", path, a)
		}
	}
}

// TestPageFaults: what TestPage looks for is found where it is.
func TestPageFaults(t *testing.T) {
	t.Parallel()
	b := startBrowser(t, t.TempDir())
	if b == nil {
		return
	}
	b.open("data:text/html,<input><svg></svg><table><tr><td>x</td></tr></table><a href=x></a><p style='color:%23999'>pale</p><div style='width:3000px'>wide</div>",
		360, "light")
	found := strings.Join(b.run(faults), "\n")
	for _, want := range []string{"no label", "no text", "no heads", "no name", "contrast 2.8", "wider than",
		"no outline"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not among\n%s", want, found)
		}
	}
	b.open("data:text/html,<script>console.error('oh')</script>", 360, "dark")
	if len(b.said) == 0 {
		t.Error("an error of the console goes unheard")
	}
}
