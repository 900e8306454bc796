package forms

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxTemplates is how many scripts of a folder are offered.
const maxTemplates = 50

// Template is a script to begin with.
type Template struct{ Name, About string }

// Templates lists the scripts of a folder, with the first comment in each.
func Templates(dir string) (list []Template) {
	entries, _ := os.ReadDir(dir) // none if there is none
	for _, e := range entries {
		if text, ok := ReadTemplate(dir, e.Name()); ok && len(list) < maxTemplates {
			list = append(list, Template{e.Name(), about(text)})
		}
	}
	return list
}

// spoken is the first line of a script that says something to people.
var spoken = regexp.MustCompile(`(?m)^\s*# +(\S.*?)\s*$`)

func about(text string) string {
	if m := spoken.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// ReadTemplate is one of them: a plain file of the folder itself, and no link, which could lead anywhere.
func ReadTemplate(dir, name string) (string, bool) {
	if dir == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", false
	}
	file := filepath.Join(dir, name)
	if fi, err := os.Lstat(file); err != nil || !fi.Mode().IsRegular() || fi.Size() > templateIs {
		return "", false
	}
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, templateIs))
	return strings.ToValidUTF8(string(text), "�"), err == nil && strings.HasPrefix(string(text), "#!")
}
