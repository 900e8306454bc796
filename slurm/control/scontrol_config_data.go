package control

import (
	"strings"

	"dev.muster/api"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// controllerTable is where servers are.
var controllerTable = data.Table[api.Server]{Schema: "controller", Members: []data.Member[api.Server]{
	{Path: "address", Of: func(s *api.Server) data.Value { return data.Text(s.Addr) }},
	{Path: "machine", Of: func(s *api.Server) data.Value { return data.Text(s.Name) }},
}}

// configAnswers reports whether a version has an answer for the configuration.
func configAnswers(k *data.Ask) bool {
	return k.Answer(data.Meta{}).Schemas.Type("slurm_conf") != nil
}

// configData is scontrol show config in JSON and YAML.
func configData(c *control, r *api.ClusterResponse) int {
	if !configAnswers(&c.data) {
		return noData(c, "show config of this version")
	}
	return c.sys.Answer(&c.data, c.out, r.Config.ClusterName, ConfigParts(r)...)
}

// ConfigParts are the active configuration, and what is known of it.
func ConfigParts(r *api.ClusterResponse) []data.Part {
	lines := ConfigText(r)
	text := func(key string) string {
		switch key {
		case "ReturnToService":
			words := map[string]string{"0": "disabled", "1": "non_responsive_only", "2": "always"}
			return words[lines[key]]
		case "PropagatePrioProcess":
			words := map[string]string{"0": "off", "1": "on", "2": "max_nice"}
			return words[lines[key]]
		case "SlurmUser", "SlurmdUser":
			name, _, _ := strings.Cut(lines[key], "(")
			return name
		case "ConfFlags":
			return confFlags(lines)
		}
		return lines[key]
	}
	own := map[string]data.Value{"controllers": data.Records(&controllerTable, r.Servers)}
	meta := map[string]data.Value{"BOOT_TIME": data.Num(r.Booted.Unix()), "LastUpdate": data.Num(r.Booted.Unix()),
		"NEXT_JOB_ID": data.Num(r.NextJob), "SLURM_VERSION": data.Text(data.Release),
		"SLURM_CONF": data.Text(lines["SLURM_CONF"])}
	return []data.Part{data.Settings("slurm_conf", "slurm_conf", own, text),
		data.Settings("slurm_conf_meta", "slurm_conf_meta", meta, func(string) string { return "" })}
}

// confFlags are the keys that are flags in JSON.
func confFlags(lines map[string]string) string {
	var on []string
	for _, key := range [...]string{"DisableRootJobs", "AllowSpecResourcesUsage", "UsePam", "TrackWCKey"} {
		if front.Choose(lines[key] == "1", "Yes", lines[key]) == "Yes" {
			on = append(on, key)
		}
	}
	return strings.Join(on, ",")
}
