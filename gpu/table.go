package gpu

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"dev.muster/cluster"
)

// Table prints a look for people: a line a GPU, its slices below it, and what is wrong.
func Table(out io.Writer, s *Scan, faults []cluster.Fault) error {
	if len(s.Readings) == 0 {
		fmt.Fprintln(out, "No GPUs found.")
	} else {
		fmt.Fprintf(out, "Driver %s, seen by %s\n", cmp.Or(s.Driver, "of unknown version"), s.Source)
		t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "MINOR\tTYPE\tMEM_MB\tUSED_MB\tUTIL\tTEMP\tWATT\tBUS\tNUMA\tCPUS\tNVLINKS\tFABRIC\tUUID\tMODEL")
		for i := range s.Readings {
			r := &s.Readings[i]
			g := &r.GPU
			kind, links := g.Type, strconv.Itoa(g.NVLinks)
			switch {
			case r.Lost != "":
				kind = "lost"
			case g.Switched:
				links += ", switched"
			}
			if r.NVLinksDown > 0 {
				links += fmt.Sprintf(", %d down", r.NVLinksDown)
			}
			fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d%%\t%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", g.Minor, kind, g.MemMB, r.MemUsedMB, r.Util, r.TempC,
				r.PowerMW/1000, g.PCI, g.NUMA, cmp.Or(g.Cores.String(), "-"), links, cmp.Or(g.Fabric, "-"), g.UUID, g.Model)
			for _, m := range r.Slices {
				fmt.Fprintf(t, "\t%s\t%d\t\t\t\t\t\t\t\t\t\t%s\tinstance %d.%d\n", m.Type, m.MemMB, m.UUID,
					m.MIG.Instance, m.MIG.Compute)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, f := range faults {
		if _, err := fmt.Fprintf(out, "%s: %s\n", f.Action, f.Text); err != nil {
			return err
		}
	}
	return nil
}
