package values

import (
	"path"
	"strings"

	"dev.muster/cluster"
)

// imageSchemes may stand before images in files.
var imageSchemes = []string{"oci:", "oci-archive:", "docker-archive:"}

// ContainerImage says what is wrong with what names an image; "": nothing.
func ContainerImage(v string) (why string) {
	scheme, _, ok := strings.Cut(v, "://")
	switch {
	case v == "" || strings.ContainsAny(v, " \t\n"):
		return "an image is [USER@][REGISTRY#]IMAGE[:TAG], a path that begins with / or ./, oci:PATH[:TAG], " +
			"oci-archive:PATH or docker-archive:PATH"
	case ok && scheme != "docker":
		return "images come from a registry (docker://) or from files, not by " + scheme + "://"
	}
	for _, scheme := range imageSchemes {
		at, ok := strings.CutPrefix(v, scheme)
		if ok && !isPath(at) {
			return "what stands behind " + scheme + " begins with / or ./"
		}
	}
	return ""
}

// isPath reports whether a text is meant as a path, and as nothing else.
func isPath(text string) bool {
	return path.IsAbs(text) || strings.HasPrefix(text, "./")
}

// mountFlags are the flags of a mount; some say what is so anyway.
var mountFlags = map[string]func(m *cluster.ContainerMount){
	"ro":            func(m *cluster.ContainerMount) { m.ReadOnly = true },
	"rw":            func(m *cluster.ContainerMount) { m.ReadOnly = false },
	"rprivate":      func(m *cluster.ContainerMount) { m.Private = true },
	"x-create=file": func(m *cluster.ContainerMount) { m.File = true },
	"x-create=dir":  func(m *cluster.ContainerMount) { m.Dir = true },
	"rslave":        func(*cluster.ContainerMount) {},
	"rbind":         func(*cluster.ContainerMount) {},
	"x-create=auto": func(*cluster.ContainerMount) {},
}

// ContainerMount reads SRC[:DST[:FLAG+FLAG]], what of the node a container has; why says what is wrong with it.
func ContainerMount(text string) (m cluster.ContainerMount, why string) {
	part := strings.Split(text, ":")
	if len(part) > 3 {
		return m, "a mount is SRC[:DST[:FLAGS]]"
	}
	usual := []string{part[0], "rw"} // of what is not given
	part = append(part, usual[len(part)-1:]...)
	m.Source = part[0]
	m.Target = part[1]
	if !isPath(m.Source) {
		return m, "what is mounted begins with / or ./"
	}
	if m.Target != m.Source && !path.IsAbs(m.Target) {
		return m, "its place inside begins with /"
	}
	for flag := range strings.SplitSeq(part[2], "+") {
		set, ok := mountFlags[flag]
		if !ok {
			const known = "ro, rw, rprivate, rslave, rbind and x-create=dir|file"
			return m, "the flag " + flag + " is not known here; " + known + " are"
		}
		set(&m)
	}
	return m, ""
}
