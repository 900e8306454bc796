package front

import (
	"strings"

	"dev.muster/api"
)

// FedAsk is what --federation, --local and --sibling ask for.
type FedAsk struct {
	Federation, Local, Sibling bool
}

// Wants reports whether the whole federation is meant: if that is asked for, or the site shows it where nothing else is
// (fed_display).
func (a *FedAsk) Wants(clusters string, display bool) bool {
	asked := a.Federation || a.Sibling
	near := clusters != "" || a.Local
	return !near && (asked || display)
}

// Members are the command at each member of the federation that this cluster is in; nil: it is in none.
func (s *Sys) Members() (list []*Sys) {
	resp, _ := Call(s, api.ShowFederation, api.AfterQuery{}) // daemons of before know of none
	if resp.Record == nil {
		return nil
	}
	self := 0
	list = make([]*Sys, 0, len(resp.Record.Members))
	for _, m := range resp.Record.Members {
		own := strings.EqualFold(m.Name, resp.Cluster)
		self += BoolInt(own)
		near := Choose(own, m.Name, resp.Cluster)
		one := s.at(m.Name, near)
		list = append(list, one)
	}
	if self == 0 { // it has left
		return nil
	}
	return list
}

// MemberFailed says that a member of the federation did not answer; what the others say is shown.
func (s *Sys) MemberFailed(err error) {
	text, _ := ErrorText(err)
	s.Say("error: cluster %s of the federation: %s", s.cluster, text)
}
