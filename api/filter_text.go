package api

import (
	"slices"
	"strings"
)

// Rules for commands' options before they submit come as one text: the site's script in Lua, and before
// it, if users' own defaults count, a line that says so. To Lua it is a comment.

// FilterUser and FilterScript are the plugins of CliFilterPlugins.
const (
	FilterUser   = "user_defaults"
	FilterScript = "lua"
)

// filterMark begins the line.
const filterMark = "-- cli_filter:"

// FilterPlugins are the plugins that a value of CliFilterPlugins names, in order.
func FilterPlugins(value string) (list []string) {
	for word := range strings.SplitSeq(strings.ToLower(value), ",") {
		name := strings.TrimPrefix(strings.TrimSpace(word), "cli_filter/")
		if name == FilterUser || name == FilterScript {
			list = append(list, name)
		}
	}
	return list
}

// JoinFilter is the text for commands of a cluster.
func JoinFilter(plugins []string, cluster, script string) string {
	return filterMark + " " + cluster + " " + strings.Join(plugins, ",") + "\n" + script
}

// CutFilter parts the text again. Without the line the script alone counts.
func CutFilter(text string) (plugins []string, cluster, script string) {
	first, rest, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(first, filterMark))
	if !strings.HasPrefix(first, filterMark) || len(words) != 2 {
		return []string{FilterScript}, "", text
	}
	plugins = strings.Split(words[1], ",")
	if rest == "" {
		plugins = slices.DeleteFunc(plugins, func(name string) bool { return name != FilterUser })
	}
	return plugins, words[0], rest
}
