package conf

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// detections are the values of AutoDetect of gres.conf(5). All but off are one to muster: it looks for every make.
var detections = []string{"nvml", "nvidia", "nvidia-smi", "rsmi", "rocm", "oneapi", "nrt", "full", "off"}

// gresKeys are the keys as gres.conf(5) writes them.
var gresKeys = map[string]string{"nodename": "NodeName", "autodetect": "AutoDetect", "name": "Name",
	"type": "Type", "file": "File",
	"multiplefiles": "MultipleFiles", "count": "Count", "cores": "Cores", "cpus": "CPUs", "links": "Links",
	"flags": "Flags"}

// gresFlags are the Flags that gres.conf(5) knows.
var gresFlags = []string{"countonly", "one_sharing", "all_sharing", "nvidia_gpu_env", "amd_gpu_env",
	"intel_gpu_env", "opencl_env",
	"no_gpu_env", "explicit", "no_consume"}

// gresLine reads one line of gres.conf. It is compared with what a node finds when that registers; nodes that are
// known only from the configuration get the cores of their GPUs from it.
func (r *reader) gresLine(file string, n int, ps []pair) {
	l := cluster.GRESLine{At: path.Base(file) + ":" + strconv.Itoa(n)}
	for _, p := range ps {
		if err := gresKey(&l, p); err != nil {
			r.note(file, n, "%s=%s: %v", cmp.Or(gresKeys[p.key], p.key), p.value, err)
		}
	}
	if l.Name == "" && l.AutoDetect == "" {
		r.note(file, n, "neither Name nor AutoDetect; the line has no effect")
		return
	}
	if count := len(l.Files); strings.EqualFold(l.Name, "gpu") && !l.Multiple && count > 0 && l.Count > 0 && l.Count != count {
		r.note(file, n, "Count=%d of %d files; the files count", l.Count, count)
	}
	if l.Multiple && len(l.Files) == 0 {
		l.Multiple = false
	}
	r.cfg.GRES = append(r.cfg.GRES, l)
	if strings.EqualFold(l.Name, "gpu") {
		r.place(&l)
	}
}

// gresKey takes one key of a line.
func gresKey(l *cluster.GRESLine, p pair) error {
	var err error
	switch p.key {
	case "nodename":
		return gresNodes(l, p.value)
	case "autodetect":
		if !slices.Contains(detections, strings.ToLower(p.value)) {
			return errors.New("want nvml, rsmi or off")
		}
		l.AutoDetect = strings.ToLower(p.value)
	case "name":
		l.Name = p.value
	case "type":
		l.Type = p.value
	case "file", "multiplefiles":
		if l.Files, err = hostlist.Expand(p.value); err != nil {
			return err
		}
		l.Multiple = p.key == "multiplefiles"
	case "count":
		if l.Count, err = gresCount(p.value); err != nil {
			return err
		}
	case "cores", "cpus":
		l.Cores, err = cluster.ParseIDSet(strings.Trim(p.value, "[]"))
		if err != nil || strings.ContainsAny(p.value, "[]") {
			return errors.New("want a list such as 0-7,16-23")
		}
	case "links":
		return gresLinks(l, p.value)
	case "flags":
		return gresWords(l, p.value)
	default:
		return errors.New(noKey + "gres.conf")
	}
	return nil
}

func gresNodes(l *cluster.GRESLine, text string) error {
	names, err := hostlist.Expand(text)
	if err != nil {
		return err
	}
	for _, name := range names {
		l.Nodes = append(l.Nodes, cluster.NodeName(name))
	}
	return nil
}

func gresLinks(l *cluster.GRESLine, text string) error {
	for w := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(w)
		if err != nil {
			return errors.New("want numbers such as -1,4,0,0")
		}
		l.Links = append(l.Links, k)
	}
	return nil
}

// gresWords reads flags; those that are not known are kept and told.
func gresWords(l *cluster.GRESLine, text string) (err error) {
	for w := range strings.SplitSeq(strings.ToLower(text), ",") {
		if !slices.Contains(gresFlags, w) {
			err = fmt.Errorf("%s is not known", w)
		}
		l.Flags = append(l.Flags, w)
	}
	return err
}

// gresCount reads a count with a suffix of 1024s (gres.conf(5)).
func gresCount(text string) (int, error) {
	digits, unit := text, 1
	if i := strings.IndexAny("KMGTP", strings.ToUpper(text[max(len(text)-1, 0):])); text != "" && i >= 0 {
		digits, unit = text[:len(text)-1], 1<<(10*(i+1))
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0, errors.New("want a number")
	}
	return n * unit, nil
}

// place gives the GPUs of declared nodes the line's cores, in the order of the lines.
func (r *reader) place(l *cluster.GRESLine) {
	count := max(l.Count, len(l.Files))
	if l.Multiple {
		count = 1
	}
	for i := range r.cfg.Declared {
		d := &r.cfg.Declared[i]
		if len(l.Nodes) > 0 && !slices.Contains(l.Nodes, d.Name) {
			continue
		}
		left := count
		d.Inventory.GPUs = slices.Clone(d.Inventory.GPUs)
		for k := range d.Inventory.GPUs {
			g := &d.Inventory.GPUs[k]
			if left > 0 && !r.placed[d.Name].Has(k) && (l.Type == "" || g.Type == l.Type) {
				g.Cores, left = cluster.CPUsOf(l.Cores, max(d.Inventory.ThreadsPerCore, 1)), left-1
				r.placed[d.Name] = r.placed[d.Name].Union(cluster.NewIDSet(k))
			}
		}
	}
}
