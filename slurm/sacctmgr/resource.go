package sacctmgr

import "dev.muster/slurm/front"

// resource would be licenses that accounting keeps for several clusters: here they are part of the configuration.
type resource struct{}

func resourceColumns() (cols []front.Column[resource]) {
	for _, c := range []struct {
		name, head string
		width      int
	}{{"Name", "Name", 10}, {"Server", "Server", 10}, {"Type", "Type", 8}, {"Count", "Count", 6},
		{"Allocated", "% Allocated", 11}, {"Allowed", "% Allowed", 10}, {"ServerType", "ServerType", 10},
		{"Cluster", "Cluster", 10}, {"Description", "Descr", 20}, {"Flags", "Flags", 20}, {"ID", "ID", 6},
		{"LastConsumed", "LastConsumed", 12}} {
		cols = append(cols, front.Column[resource]{
			Name: c.name, Head: c.head, Width: c.width, Of: func(*resource) string { return "" },
		})
	}
	return cols
}

// resources is sacctmgr show resource: there are none.
func resources(m *manager, q *mgrQuery) int {
	fields := "Name,Server,Type,Count,Allocated,ServerType" + front.Choose(q.withAssoc, ",Cluster,Allowed", "")
	return showTable(m, q, resourceColumns(), fields, nil)
}
