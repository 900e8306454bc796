package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPlugins: scripts are read with the plugin that calls them, and written again.
func TestPlugins(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "slurm.conf")
	write("slurm.conf", "JobSubmitPlugins=job_submit/lua,require_timelimit,throttle\n")
	const lacks = "JobSubmitPlugins=lua: there is no job_submit.lua beside slurm.conf"
	if _, _, err := Load(file); err == nil || !strings.Contains(err.Error(), lacks) {
		t.Errorf("no script: %v", err)
	}
	write("job_submit.lua", "-- # =\nx = 1\n")
	write("cli_filter.lua", "y = 1\n")
	cfg, notes, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"lua", "require_timelimit"}; !reflect.DeepEqual(cfg.SubmitPlugins, want) {
		t.Errorf("%q, want %q", cfg.SubmitPlugins, want)
	}
	told := strings.Join(notes, "\n")
	for _, want := range []string{"there is no plugin throttle", "cli_filter.lua is not called"} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q in %q", want, told)
		}
	}
	if want := map[string]string{"job_submit.lua": "-- # =\nx = 1\n"}; !reflect.DeepEqual(cfg.Scripts, want) {
		t.Errorf("%q, want %q", cfg.Scripts, want)
	}
	other := t.TempDir()
	for _, f := range Write(cfg) {
		if err := os.WriteFile(filepath.Join(other, f.Name), []byte(f.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again, _, err := Load(filepath.Join(other, "slurm.conf"))
	if err != nil || !reflect.DeepEqual(again.Plugins, cfg.Plugins) {
		t.Errorf("%+v, want %+v (%v)", again.Plugins, cfg.Plugins, err)
	}
}

// TestTokenKeys: the keys of tokens are taken without a word, what else is said of tokens is told.
func TestTokenKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slurm.conf")
	text := "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/k,jwks=/j,disable_token_creation,use_client_ids\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, notes, err := Load(file)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "use_client_ids has no effect") {
		t.Errorf("%q %v", notes, err)
	}
	if got := cfg.Keys["authaltparameters"]; got != "jwt_key=/k,jwks=/j,disable_token_creation,use_client_ids" {
		t.Errorf("kept: %q", got)
	}
}
