package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestWideRegions: what may be scrolled can be reached by the keyboard.
func TestWideRegions(t *testing.T) {
	wide := regexp.MustCompile(`<\w+ class="wide[^>]*>`)
	err := fs.WalkDir(files, "views", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		for _, tag := range wide.FindAllString(string(text), -1) {
			if !strings.Contains(tag, `tabindex="0"`) {
				t.Errorf("%s: %s", name, tag)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatic: the style sheet and the script are sent compressed to those who take that, and are the same.
func TestStatic(t *testing.T) {
	for name, kind := range map[string]string{"/page.css": "text/css", "/page.js": "javascript",
		"/icon.svg": "image/svg"} {
		ask := func(accept string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", name, nil)
			r.Header.Set("Accept-Encoding", accept)
			w := httptest.NewRecorder()
			Static().ServeHTTP(w, r)
			return w
		}
		plain, packed := ask(""), ask("gzip, br")
		if packed.Code != 200 || packed.Header().Get("Content-Encoding") != "gzip" ||
			!strings.Contains(packed.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d %v", name, packed.Code, packed.Header())
			continue
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(text, plain.Body.Bytes()) || len(text) == 0 {
			t.Errorf("%s: %d bytes are packed of %d, %v", name, len(text), plain.Body.Len(), err)
		}
	}
}

// TestNumber: digits of large numbers stand in groups.
func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 9999: "9999", 10000: "10\u202f000", 1234567: "1\u202f234\u202f567"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
