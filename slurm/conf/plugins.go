package conf

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// submitScript is the file of the script that looks at submissions.
const submitScript = "job_submit.lua"

// readScript reads job_submit.lua; it counts if slurm.conf names the plugin.
func readScript(r *reader, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(text) > cluster.MaxScriptBytes {
		return fmt.Errorf("%s has %d bytes, more than %d", file, len(text), cluster.MaxScriptBytes)
	}
	r.cfg.Scripts = map[string]string{submitScript: string(text)}
	return nil
}

// luaPlugin is the plugin that is a script.
const luaPlugin = "lua"

// submitPlugins are those of Slurm that muster has.
var submitPlugins = []string{luaPlugin, "all_partitions", "require_timelimit"}

// readPlugins reads JobSubmitPlugins; those that muster lacks are told.
func readPlugins(r *reader, file string, n int, p pair) {
	r.cfg.SubmitPlugins = nil
	for word := range strings.SplitSeq(p.value, ",") {
		name := strings.ToLower(strings.TrimSpace(word))
		name = strings.TrimPrefix(name, "job_submit/")
		switch {
		case name == "" || name == "none":
		case slices.Contains(submitPlugins, name):
			r.cfg.SubmitPlugins = append(r.cfg.SubmitPlugins, name)
		default:
			r.note(file, n, "JobSubmitPlugins: there is no plugin %s; there are %s, and a script in Lua does the same",
				name, strings.Join(submitPlugins, ", "))
		}
	}
}

// settleScripts keeps the script if it is called, and refuses a configuration that lacks it.
func settleScripts(r *reader) {
	used := slices.Contains(r.cfg.SubmitPlugins, luaPlugin)
	if _, ok := r.cfg.Scripts[submitScript]; used && !ok {
		r.refused = append(r.refused, fmt.Errorf("JobSubmitPlugins=lua: there is no %s beside slurm.conf", submitScript))
	} else if !used && ok {
		r.notes = append(r.notes, submitScript+" is not called: JobSubmitPlugins does not name lua")
		r.cfg.Scripts = nil
	}
}

// scriptFiles are the scripts as files.
func scriptFiles(cfg *cluster.Config) (out []File) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Scripts)) {
		out = append(out, File{name, strings.Split(strings.TrimSuffix(cfg.Scripts[name], "\n"), "\n")})
	}
	return out
}
