package manual

import (
	"dev.muster/slurm"
	"dev.muster/slurm/conf"
)

// topics are the manuals besides those of commands.
func topics() []slurm.Topic {
	return []slurm.Topic{slurm.ReasonsTopic(), slurm.WrappersTopic(), confTopic()}
}

// confTopic is muster.conf(5), from the table by which that is read.
func confTopic() slurm.Topic {
	about := slurm.Section{Title: "description", Text: "" +
		"muster.conf stands beside slurm.conf and has what Slurm has no keys for: how the page is reached, who may " +
		"look at it, and what may be done there. A line is KEY=VALUE; # begins a comment. muster config check " +
		"looks at both files, scontrol reconfigure activates them on all servers. A mistyped line is refused: " +
		"it might open the page to others than was meant."}
	keys := slurm.Section{Title: "keys"}
	for _, r := range conf.MusterRows() {
		keys.Rows = append(keys.Rows, slurm.Row{Word: r.Key, Means: r.Means})
	}
	files := slurm.Section{Title: "files", Rows: []slurm.Row{
		{Word: "/etc/muster/muster.conf", Means: "or next to the active slurm.conf"}}}
	return slurm.Topic{Chapter: 5, About: "Configuration", Page: slurm.Page{Name: "muster.conf",
		Summary:  "the page of a muster cluster: how it is reached, and by whom",
		Sections: []slurm.Section{about, keys, files}}}
}
