package cluster

import (
	"path"
	"slices"
	"strings"
)

// PrivateDirs are folders that every job has for itself alone on some nodes.
type PrivateDirs struct {
	Nodes []NodeName `json:"nodes,omitempty"` // none: all that no other row names
	// Base is the folder below which their content is kept; %n in it is the node's name, %h the first part of its
	// host's. Empty: jobs there share the machine's folders.
	Base   string   `json:"base,omitempty"`
	Make   bool     `json:"make,omitempty"`   // make Base if it is not there
	Dirs   []string `json:"dirs,omitempty"`   // absolute paths
	Shared bool     `json:"shared,omitempty"` // what the machine mounts later appears in jobs
	Init   string   `json:"init,omitempty"`   // program that root runs for each new job, before its folders are put in place
}

// PrivateOn are the folders that jobs have for themselves on a node of a host; nil if there are none.
func (c *Config) PrivateOn(node NodeName, host string) *PrivateDirs {
	var found *PrivateDirs
	for i := range c.PrivateDirs {
		if p := &c.PrivateDirs[i]; slices.Contains(p.Nodes, node) || len(p.Nodes) == 0 && found == nil {
			found = p
		}
	}
	if found == nil || found.Base == "" {
		return nil
	}
	out := *found
	short, _, _ := strings.Cut(host, ".")
	out.Base = path.Clean(strings.NewReplacer("%n", string(node), "%h", short).Replace(out.Base))
	return &out
}
