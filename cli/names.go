package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"dev.muster/slurm"
	"dev.muster/slurm/front"
)

// Completion asks for what there is: muster internal names KIND prints the names of a kind, and muster internal
// names after COMMAND WORDS what may follow those words.

// nameSource is the front-end that knows the names of a kind; each cuts one of its words into names, nil: as it is.
type nameSource struct {
	argv string
	each func(word string) []string
}

func nameSources() map[string]nameSource {
	return map[string]nameSource{
		"partitions":   {"sinfo -h -o %R", nil},
		"nodes":        {"sinfo -h -N -o %N", nil},
		"features":     {"sinfo -h -o %f", func(w string) []string { return strings.Split(w, ",") }},
		"gres":         {"sinfo -h -o %G", gresNames},
		"jobs":         {"squeue -h --me -o %A", nil},
		"alljobs":      {"squeue -h -o %A", nil},
		"reservations": {"scontrol -o show reservation", named("ReservationName=")},
		"licenses":     {"scontrol -o show licenses", named("LicenseName=")},
		"accounts":     {"sacctmgr -nP list account format=Account", nil},
		"users":        {"sacctmgr -nP list user format=User", nil},
		"qos":          {"sacctmgr -nP list qos format=Name", nil},
		"wckeys":       {"sacctmgr -nP list wckey format=WCKey", nil},
		"clusters":     {"sacctmgr -nP list cluster format=Cluster", nil},
	}
}

// named takes the values of a key.
func named(key string) func(string) []string {
	return func(word string) []string {
		if name, ok := strings.CutPrefix(word, key); ok {
			return []string{name}
		}
		return nil
	}
}

// gresNames are those of GPUs and other devices of a node, as options take them: gpu and gpu:h100 of
// gpu:h100:8(S:0-1).
func gresNames(word string) (out []string) {
	for one := range strings.SplitSeq(word, ",") {
		one, _, _ = strings.Cut(one, "(")
		parts := strings.Split(one, ":")
		if len(parts) > 2 {
			out = append(out, parts[0]+":"+parts[1])
		}
		out = append(out, parts[0])
	}
	return out
}

// following says what may come after the first words of a command: names of a kind, or, in brackets, words.
func following() map[string]string {
	entities := "(account association cluster coordinator qos resource reservation transactions tres user wckey)"
	out := map[string]string{
		"scancel": "jobs", "sattach": "jobs", "sstat": "jobs", "seff": "alljobs",
		"muster why": "alljobs nodes", "muster logs": "jobs", "muster samples": "jobs nodes", "muster burnin": "nodes",
		"scontrol show": "(job node partition reservation config step licenses assoc_mgr topology hostnames daemons)",
		"scontrol hold": "jobs", "scontrol release": "jobs", "scontrol requeue": "jobs", "scontrol suspend": "alljobs",
		"scontrol resume": "alljobs", "scontrol reboot": "nodes", "scontrol wait_job": "jobs",
		"sacctmgr add": entities, "sacctmgr create": entities, "sacctmgr delete": entities, "sacctmgr remove": entities,
		"sacctmgr list": entities, "sacctmgr show": entities, "sacctmgr modify": entities,
	}
	for entity, kind := range map[string]string{"job": "alljobs", "node": "nodes", "partition": "partitions",
		"reservation": "reservations"} {
		out["scontrol show "+entity] = kind
	}
	for _, verb := range []string{"delete", "remove", "list", "show", "modify"} {
		for entity, kind := range map[string]string{"account": "accounts", "user": "users", "qos": "qos",
			"cluster": "clusters", "wckey": "wckeys"} {
			out["sacctmgr "+verb+" "+entity] = kind
		}
	}
	return out
}

// Names prints them, one a line; nothing where nothing is known, or the cluster does not answer.
func Names(words []string) int {
	if words[0] == "after" {
		typed := slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
		kinds := following()[strings.Join(typed, " ")]
		if inside, ok := strings.CutPrefix(kinds, "("); ok {
			fmt.Println(strings.ReplaceAll(strings.TrimSuffix(inside, ")"), " ", "\n"))
			return 0
		}
		words = strings.Fields(kinds)
	}
	sources, seen := nameSources(), map[string]bool{}
	for _, kind := range words {
		for _, name := range sources[kind].names() {
			if name != "" && name != "(null)" && !seen[name] {
				seen[name] = true
				fmt.Println(name)
			}
		}
	}
	return 0
}

// names asks the front-end.
func (n nameSource) names() (out []string) {
	argv := strings.Fields(n.argv)
	if argv == nil {
		return nil
	}
	sys := front.RealSys(argv[0])
	sys.Dial = front.DialLocal
	var told bytes.Buffer
	sys.Stdout, sys.Stderr, sys.Stdin = &told, &bytes.Buffer{}, bytes.NewReader(nil)
	slurm.Main(argv, sys)
	for _, word := range strings.Fields(told.String()) {
		if n.each == nil {
			out = append(out, word)
			continue
		}
		out = append(out, n.each(word)...)
	}
	return out
}
