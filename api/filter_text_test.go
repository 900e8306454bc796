package api

import (
	"reflect"
	"testing"
)

// TestFilterText: what commands are told of their options comes apart as it was put together, and a script alone is
// what it was before there was anything else.
func TestFilterText(t *testing.T) {
	for _, row := range []struct {
		value, script string
		want          []string
	}{
		{"cli_filter/user_defaults", "", []string{FilterUser}},
		{"lua, cli_filter/user_defaults,syslog", "x = 1\n", []string{FilterScript, FilterUser}},
		{"user_defaults,lua", "x = 1\n", []string{FilterUser, FilterScript}},
	} {
		plugins, cluster, script := CutFilter(JoinFilter(FilterPlugins(row.value), "c", row.script))
		if !reflect.DeepEqual(plugins, row.want) || cluster != "c" || script != row.script {
			t.Errorf("%s: %q %q %q", row.value, plugins, cluster, script)
		}
	}
	plugins, cluster, script := CutFilter("x = 1\n")
	if !reflect.DeepEqual(plugins, []string{FilterScript}) || cluster != "" || script != "x = 1\n" {
		t.Errorf("a script alone: %q %q %q", plugins, cluster, script)
	}
}
