package control

import (
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// showFederation is scontrol show federation: this cluster, and the other members as far as they answer it.
func showFederation(c *control) int {
	resp, err := front.Call(c.sys, api.ShowFederation, api.AfterQuery{})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_federation error", err)
	}
	if resp.Record == nil {
		return 0
	}
	peers, _ := front.Call(c.sys, api.ListPeers, api.Empty{}) // where they are is not known then
	var self string
	siblings := &strings.Builder{}
	for _, m := range resp.Record.Members {
		line := " ID:" + strconv.Itoa(int(m.ID)) + " FedState:" + show.FedState(m.State) + " Features:" +
			strings.Join(m.Features, ",")
		if strings.EqualFold(m.Name, resp.Cluster) {
			self = "Self:       " + m.Name + ":" + ownPlace(c) + line + "\n"
			continue
		}
		there := front.Choose(resp.Away.Has(m.ID), "No", "Yes")
		siblings.WriteString("Sibling:    " + m.Name + ":" + placeOf(peers.Peers, &m) + line +
			" PersistConnSend/Recv:" + there + "/" + there + " Synced:" + there + "\n")
	}
	if self == "" { // it has left
		return 0
	}
	_, _ = c.out.WriteString("Federation: " + resp.Record.Name + "\n" + self + siblings.String())
	return 0
}

// placeOf is where a member is asked, HOST:PORT.
func placeOf(peers []api.PeerInfo, m *federation.Member) string {
	for _, p := range peers {
		if !strings.EqualFold(p.Name, m.Name) {
			continue
		}
		first, _, _ := strings.Cut(p.URLs, ",")
		if _, at, ok := strings.Cut(first, "://"); ok {
			host, _, _ := strings.Cut(at, "/")
			return host
		}
	}
	return ":0"
}

// ownPlace is where the leader listens.
func ownPlace(c *control) string {
	resp, err := front.Call(c.sys, api.Ping, api.Empty{})
	if err != nil {
		return ":0"
	}
	for _, s := range resp.Servers {
		if s.Leader {
			return s.Addr
		}
	}
	return ":0"
}
