package server

import "dev.muster/api"

// pastRoutes registers what is told of the past and asked of it.
func pastRoutes(s *Server, m *api.Mux) {
	handle(s, m, api.ListHistory, s.hist.ListHistory)
	handle(s, m, api.ListChanges, s.hist.ListChanges)
	handle(s, m, api.AskHistory, s.hist.AskHistory)
	handle(s, m, api.ShowUsage, s.hist.ShowUsage)
	handle(s, m, api.ArchiveHistory, s.archiveHistory)
	write(m, s, api.LoadHistory)
	write(m, s, api.ImportHistory)
	handle(s, m, api.ListImports, s.hist.ListImports)
	api.HandleTunnel(m, api.CopyHistory, api.Peer, s.hist.CheckCopy, s.hist.CopyHistory)
	api.HandleTunnel(m, api.SaveCluster, api.User, s.hist.CheckSave, s.hist.SaveCluster)
	handle(s, m, api.TellSamples, s.hist.TellSamples)
	api.Handle(m, api.CopySamples, s.hist.CopySamples)
	handle(s, m, api.ShowSamples, s.hist.ShowSamples)
	handle(s, m, api.ListIdle, listIdle(s))
}
