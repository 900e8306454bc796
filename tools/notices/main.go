// Command notices writes the licenses of all that muster's programs contain besides muster itself: Go's library, the
// modules that are linked in, and the scripts of the page. Its argument is the folder of the repository; the result goes
// to standard output.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the main packages whose modules count.
var programs = []string{".", "./agent/container/helper", "./gpu/helper", "./pmi/helper"}

// component is something that has a license of its own.
type component struct {
	name, version string
	texts         []string
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: notices FOLDER"))
	}
	list, err := findComponents(os.Args[1])
	if err != nil {
		fail(err)
	}
	text, err := writeNotices(list)
	if err != nil {
		fail(err)
	}
	_, _ = os.Stdout.WriteString(text)
}

func fail(err error) {
	_, _ = fmt.Fprintln(os.Stderr, "notices:", err)
	os.Exit(1)
}

// findComponents collects the components of the repository in a folder.
func findComponents(root string) ([]component, error) {
	var out []component
	scripts, err := findScripts(root)
	if err != nil {
		return nil, err
	}
	out = append(out, scripts...)
	modules, err := listModules(root)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		texts, err := readLicenses(m[2])
		if err != nil {
			return nil, err
		}
		out = append(out, component{m[0], m[1], texts})
		if m[0] == "golang.org/x/sys" { // by the same authors, under the same terms
			out = append(out, component{"Go and its standard library", "", texts})
		}
	}
	return out, nil
}

// findScripts reads packaging/xterm.cdx.json, which says what ui/static/xterm is, and compares the hashes.
func findScripts(root string) (out []component, err error) {
	b, err := os.ReadFile(filepath.Join(root, "packaging/xterm.cdx.json"))
	if err != nil {
		return nil, err
	}
	var list struct {
		Components []struct {
			Name, Version string
			Hashes        []struct{ Content string }
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("packaging/xterm.cdx.json: %w", err)
	}
	dir := filepath.Join(root, "ui/static/xterm")
	texts, err := readLicenses(dir)
	if err != nil {
		return nil, err
	}
	for _, c := range list.Components {
		file := filepath.Join(dir, filepath.Base(c.Name)+".js")
		script, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(script)); len(c.Hashes) != 1 || c.Hashes[0].Content != sum {
			return nil, fmt.Errorf("packaging/xterm.cdx.json: the SHA-256 of %s is %s", file, sum)
		}
		out = append(out, component{c.Name, c.Version, texts})
	}
	return out, nil
}

// listModules lists path, version and folder of each module that is linked on some architecture.
func listModules(root string) (out [][3]string, err error) {
	const form = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	for _, arch := range []string{"amd64", "arm64"} {
		args := append([]string{"list", "-deps", "-tags", "carryimage,carrygpu,carrypmix", "-f", form}, programs...)
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		b, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w: %s", err, errs.String())
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) == 3 {
				out = append(out, [3]string(f))
			}
		}
	}
	slices.SortFunc(out, func(a, b [3]string) int { return strings.Compare(a[0], b[0]) })
	return slices.Compact(out), nil
}

// licenseFile matches the files that a module's terms are in.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicenses reads the license files of a folder. It is an error if there are none.
func readLicenses(dir string) (texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))+"\n")
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s has no license file", dir)
	}
	return texts, nil
}

// kinds tell a license by words of its text, the first that matches.
var kinds = []struct{ words, name string }{
	{"Mozilla Public License", "MPL-2.0"},
	{"Apache License", "Apache-2.0"},
	{"Permission is hereby granted, free of charge", "MIT"},
	{"Permission to use, copy, modify, and/or distribute", "ISC"},
	{"Permission to use, copy, modify, and distribute", "ISC"},
	{"Neither the name of", "BSD-3-Clause"},
	{"Redistribution and use in source and binary forms", "BSD-2-Clause"},
	{"Additional IP Rights Grant", "patent grant"},
}

// nameLicense tells which license a text is; "" if it is none of the known.
func nameLicense(text string) string {
	plain := strings.Join(strings.Fields(text), " ")
	for _, k := range kinds {
		if strings.Contains(plain, k.words) {
			return k.name
		}
	}
	return ""
}

// majorSuffix is what a module's path has behind its repository's.
var majorSuffix = regexp.MustCompile(`/v[0-9]+$`)

// writeNotices writes the list of components, and each text once with the components that it is of.
func writeNotices(list []component) (string, error) {
	var b strings.Builder
	b.WriteString("Third-party software in muster\n\n" +
		"muster itself is under the Apache License 2.0. Its programs also contain the software below, each part under\n" +
		"its own license. The texts follow the list. The source of the parts under the Mozilla Public License 2.0,\n" +
		"unchanged, is in the repository that the part is named after, at the version given.\n\n")
	owners := map[string][]string{}
	var order []string
	for _, c := range list {
		var names []string
		for _, text := range c.texts {
			name := nameLicense(text)
			if name == "" && len(c.texts) == 1 {
				return "", fmt.Errorf("the license of %s is none of the known ones", c.name)
			}
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], c.name)
		}
		if len(names) == 0 {
			return "", fmt.Errorf("no license of %s is one of the known ones", c.name)
		}
		fmt.Fprintf(&b, "  %s: %s\n", strings.TrimSpace(c.name+" "+c.version), strings.Join(names, ", "))
		if slices.Contains(names, "MPL-2.0") {
			fmt.Fprintf(&b, "    source: https://%s, version %s\n", majorSuffix.ReplaceAllString(c.name, ""), c.version)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s", strings.Repeat("-", 100), strings.Join(owners[text], ", "), text)
	}
	return b.String(), nil
}
