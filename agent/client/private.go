package client

import (
	"fmt"
	"os"
	"strings"

	"dev.muster/cluster"
)

// hindrance is why jobs can not have folders of their own on a node; "" if they can.
func (cfg *Config) hindrance(p *cluster.PrivateDirs) string {
	if os.Geteuid() != 0 {
		return "the client does not run as root"
	}
	if cfg.Sampler == nil {
		return "nothing is executed here"
	}
	for _, dir := range p.Dirs {
		for _, own := range []string{cfg.Spool, cfg.Daemon} {
			if strings.HasPrefix(own, dir+"/") {
				return own + ", which jobs need, lies in " + dir
			}
		}
	}
	return ""
}

// secluded are the folders that jobs have for themselves on a node, nil for none.
func (w *hardware) secluded(cfg *cluster.Config, n cluster.NodeName) *cluster.PrivateDirs {
	p := cfg.PrivateOn(n, w.inventory(n).Host)
	if p == nil || w.cfg.hindrance(p) != "" {
		return nil
	}
	return p
}

// tellHindrances makes it known where jobs do not have the folders of their own that they should have.
func (w *hardware) tellHindrances(site *cluster.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []cluster.Fault
	for _, name := range w.order {
		inv := &w.nodes[name].Inventory
		p := site.PrivateOn(name, inv.Host)
		if p == nil || inv.Hollow && w.cfg.Sampler == nil {
			continue
		}
		if why := w.cfg.hindrance(p); why != "" {
			text := fmt.Sprintf("job_container/tmpfs: jobs share %s: %s", strings.Join(p.Dirs, " and "), why)
			faults = append(faults, cluster.Fault{
				Kind: cluster.FaultSystem, Part: "private folders", Cause: "shared", Text: text,
				Action: cluster.FaultNote, Passing: true,
			})
			if !w.hindered {
				w.slog.Warn("jobs have no folders of their own", "node", name, "err", why)
			}
		}
	}
	w.hindered = len(faults) > 0 // it is logged once
	if w.cfg.Machine != nil {
		w.cfg.Machine.Found("folders", faults)
	}
}
