package values

import (
	"path"
	"strings"

	"dev.muster/cluster"
)

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
	if len(part) > 3 || part[0] == "" {
		return m, "a mount is SRC[:DST[:FLAGS]]"
	}
	if !path.IsAbs(part[0]) && !strings.HasPrefix(part[0], "./") {
		return m, "what is mounted begins with / or ./"
	}
	m.Source, m.Target = part[0], part[0]
	if len(part) > 1 {
		m.Target = part[1]
		if !path.IsAbs(m.Target) {
			return m, "its place inside begins with /"
		}
	}
	if len(part) < 3 {
		return m, ""
	}
	for flag := range strings.SplitSeq(part[2], "+") {
		set, ok := mountFlags[flag]
		if !ok {
			return m, "the flag " + flag +
				" is not known here; ro, rw, rprivate, rslave, rbind and x-create=dir|file are"
		}
		set(&m)
	}
	return m, ""
}
