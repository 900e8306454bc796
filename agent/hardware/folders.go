package hardware

import (
	"fmt"
	"os"
	"strings"

	"dev.muster/cluster"
)

// hindrance is why jobs cannot have folders of their own on a node; "" if they can.
func (w *Nodes) hindrance(p *cluster.PrivateDirs) string {
	if os.Geteuid() != 0 {
		return "the client does not run as root"
	}
	if !w.cfg.Runs {
		return "nothing is executed here"
	}
	for _, dir := range p.Dirs {
		for _, own := range w.cfg.Needed {
			if strings.HasPrefix(own, dir+"/") {
				return own + ", which jobs need, lies in " + dir
			}
		}
	}
	return ""
}

// Secluded are the folders that jobs have for themselves on a node, nil for none.
func (w *Nodes) Secluded(cfg *cluster.Config, n cluster.NodeName) *cluster.PrivateDirs {
	p := cfg.PrivateOn(n, w.Inventory(n).Host)
	if p == nil || w.hindrance(p) != "" {
		return nil
	}
	return p
}

// TellHindrances makes it known where jobs do not have the folders of their own that they should have.
func (w *Nodes) TellHindrances(site *cluster.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []cluster.Fault
	for _, name := range w.order {
		inv := &w.nodes[name].Inventory
		p := site.PrivateOn(name, inv.Host)
		if p == nil || inv.Hollow && !w.cfg.Runs {
			continue
		}
		if why := w.hindrance(p); why != "" {
			text := fmt.Sprintf("job_container/tmpfs: jobs share %s: %s", strings.Join(p.Dirs, " and "), why)
			faults = append(faults, cluster.Fault{
				Kind: cluster.FaultSystem, Part: "private folders", Cause: "shared", Text: text,
				Action: cluster.FaultNote, Passing: true,
			})
			if !w.hindered {
				w.cfg.Log.Warn("jobs have no folders of their own", "node", name, "err", why)
			}
		}
	}
	w.hindered = len(faults) > 0 // it is logged once
	if w.cfg.Machine != nil {
		w.cfg.Machine.Found("folders", faults)
	}
}
