package conf

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// The files of the scripts that look at submissions, and at the options of commands.
const (
	submitScript = "job_submit.lua"
	cliScript    = "cli_filter.lua"
)

// readScript reads a script; it counts if slurm.conf names the plugin.
func readScript(r *reader, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(text) > cluster.MaxScriptBytes {
		return fmt.Errorf("%s has %d bytes, more than %d", file, len(text), cluster.MaxScriptBytes)
	}
	if r.cfg.Scripts == nil {
		r.cfg.Scripts = map[string]string{}
	}
	r.cfg.Scripts[path.Base(file)] = string(text)
	return nil
}

// luaPlugin is the plugin that is a script.
const luaPlugin = "lua"

// The plugins of Slurm that muster has, by their key.
var (
	submitPlugins = []string{luaPlugin, "all_partitions", "require_timelimit"}
	cliPlugins    = []string{luaPlugin, "user_defaults"}
)

// readPlugins reads JobSubmitPlugins or CliFilterPlugins; those that muster lacks are told.
func readPlugins(r *reader, file string, n int, p pair, known []string) (list []string) {
	for word := range strings.SplitSeq(p.value, ",") {
		name := strings.ToLower(strings.TrimSpace(word))
		name = strings.TrimPrefix(strings.TrimPrefix(name, "job_submit/"), "cli_filter/")
		switch {
		case name == "" || name == "none":
		case slices.Contains(known, name):
			list = append(list, name)
		default:
			r.note(file, n, "%s: there is no plugin %s; there are %s, and a script in Lua does the same",
				Spell(p.key), name, strings.Join(known, ", "))
		}
	}
	return list
}

// namesLua reports whether a value of CliFilterPlugins names the plugin that calls a script.
func namesLua(value string) bool {
	return slices.ContainsFunc(strings.Split(value, ","), func(name string) bool {
		return strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(name), "cli_filter/"), luaPlugin)
	})
}

// settleScripts keeps the scripts that are called, and refuses a configuration that lacks one.
func settleScripts(r *reader) {
	settleScript(r, submitScript, "JobSubmitPlugins", slices.Contains(r.cfg.SubmitPlugins, luaPlugin))
	settleScript(r, cliScript, "CliFilterPlugins", namesLua(r.cfg.Keys["clifilterplugins"]))
	settleScript(r, burstScript, "BurstBufferType", r.cfg.Burst != nil)
}

func settleScript(r *reader, name, key string, used bool) {
	if _, ok := r.cfg.Scripts[name]; used && !ok {
		r.refused = append(r.refused, fmt.Errorf("%s=lua: there is no %s beside slurm.conf", key, name))
	} else if !used && ok {
		r.notes = append(r.notes, name+" is not called: "+key+" does not name lua")
		delete(r.cfg.Scripts, name)
	}
}

// scriptFiles are the scripts as files.
func scriptFiles(cfg *cluster.Config) (out []File) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Scripts)) {
		out = append(out, File{name, strings.Split(strings.TrimSuffix(cfg.Scripts[name], "\n"), "\n")})
	}
	return out
}

// tokenWords are the parameters of tokens that servers read.
var tokenWords = []string{"jwt_key", "jwks", "disable_token_creation", "max_token_lifespan", "operator_tokens",
	"userclaimfield"}

// tokenKeys tells what of AuthAltParameters has no effect.
func tokenKeys(r *reader, file string, n int, p pair) {
	for word := range strings.SplitSeq(p.value, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(word), "=")
		if name = strings.ToLower(name); name != "" && !slices.Contains(tokenWords, name) {
			r.note(file, n, "AuthAltParameters: %s has no effect; these have: %s", name, strings.Join(tokenWords, ", "))
		}
	}
}
