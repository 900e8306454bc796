package conf

import (
	"path"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// privateDirs are the Dirs of job_container.conf(5) where it names none.
var privateDirs = []string{"/tmp", "/dev/shm"}

// containerKeys set what a line of job_container.conf(5) says.
var containerKeys = map[string]func(p *cluster.PrivateDirs, value string) (want string){
	"autobasepath": func(p *cluster.PrivateDirs, v string) string { return truth(&p.Make, v) },
	"shared":       func(p *cluster.PrivateDirs, v string) string { return truth(&p.Shared, v) },
	"basepath": func(p *cluster.PrivateDirs, v string) string {
		if p.Base = v; strings.EqualFold(v, "none") {
			p.Base = ""
			return ""
		}
		return absolute(v)
	},
	"initscript": func(p *cluster.PrivateDirs, v string) string { p.Init = v; return absolute(v) },
	"dirs": func(p *cluster.PrivateDirs, v string) (want string) {
		p.Dirs = nil
		for dir := range strings.SplitSeq(v, ",") {
			if want = absolute(dir); want != "" {
				return want
			}
			p.Dirs = append(p.Dirs, path.Clean(dir))
		}
		return ""
	},
	"nodename": func(p *cluster.PrivateDirs, v string) string {
		names, err := hostlist.Expand(v)
		if err != nil {
			return "a list of nodes: " + err.Error()
		}
		for _, n := range names {
			p.Nodes = append(p.Nodes, cluster.NodeName(n))
		}
		return ""
	},
}

// namespaceKeys are keys about how Slurm makes namespaces.
const namespaceKeys = "clonensscript clonensscript_wait clonensepilog clonensepilog_wait entirestepinns"

func truth(to *bool, v string) (want string) {
	*to = strings.EqualFold(v, "true")
	if !*to && !strings.EqualFold(v, "false") {
		return "true or false"
	}
	return ""
}

func absolute(v string) (want string) {
	if !path.IsAbs(v) || path.Clean(v) == "/" {
		return "a path that begins with /"
	}
	return ""
}

// containerLine reads a line of job_container.conf: one with NodeName is for these nodes, all others are for the rest.
func (r *reader) containerLine(file string, n int, ps []pair) {
	at := slices.IndexFunc(r.cfg.PrivateDirs, func(p cluster.PrivateDirs) bool { return len(p.Nodes) == 0 })
	own := slices.ContainsFunc(ps, func(p pair) bool { return p.key == "nodename" })
	if own || at < 0 {
		fresh := cluster.PrivateDirs{Dirs: privateDirs}
		if own && at >= 0 {
			fresh = r.cfg.PrivateDirs[at]
		}
		r.cfg.PrivateDirs = append(r.cfg.PrivateDirs, fresh)
		at = len(r.cfg.PrivateDirs) - 1
	}
	for _, p := range ps {
		set := containerKeys[p.key]
		if set == nil && slices.Contains(strings.Fields(namespaceKeys), p.key) {
			r.note(file, n, "%s has no effect: namespaces are made by muster itself; InitScript runs in them", p.key)
			continue
		}
		if set == nil {
			r.note(file, n,
				"%s=%s is not known: want AutoBasePath, BasePath, Dirs, InitScript, NodeName or Shared",
				p.key, p.value)
			continue
		}
		if want := set(&r.cfg.PrivateDirs[at], p.value); want != "" {
			r.note(file, n, "%s=%s: want %s", p.key, p.value, want)
		}
	}
}

// settleContainers activates job_container.conf if slurm.conf asks for it.
func (r *reader) settleContainers() {
	switch name := strings.ToLower(r.cfg.Keys["jobcontainertype"]); {
	case name == "job_container/tmpfs":
		if !slices.ContainsFunc(r.cfg.PrivateDirs, func(p cluster.PrivateDirs) bool { return p.Base != "" }) {
			r.notes = append(r.notes,
				"slurm.conf: JobContainerType=job_container/tmpfs changes nothing without a BasePath in job_container.conf beside it")
		}
		return
	case name != "" && name != "job_container/none" && name != "none":
		r.notes = append(r.notes,
			"slurm.conf: JobContainerType="+name+" is not known: want job_container/tmpfs; jobs share the folders of their nodes")
	case len(r.cfg.PrivateDirs) > 0:
		r.notes = append(r.notes,
			"job_container.conf: not active: slurm.conf does not say JobContainerType=job_container/tmpfs")
	}
	r.cfg.PrivateDirs = nil
}
