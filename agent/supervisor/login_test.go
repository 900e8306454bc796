package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLoginEnv: a login shell reads the user's files, what they print is no part of the answer, and the job's own
// variables win.
func TestLoginEnv(t *testing.T) {
	home := t.TempDir()
	profile := "echo welcome; export FROM_PROFILE='two\nlines' BOTH=profile\n"
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	env, err := person{"ann", home, "/bin/sh"}.loginEnv(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FROM_PROFILE=two\nlines", "HOME=" + home, "LOGNAME=ann", "BOTH=profile"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %q in %q", want, env)
		}
	}
	if got := mergeEnv(env, "BOTH=job"); getenv(got, "BOTH") != "job" {
		t.Errorf("the login wins: %q", got)
	}
	if _, err := (person{"ann", home, "/bin/false"}).loginEnv(context.Background()); err == nil {
		t.Error("a shell that refuses gives an environment")
	}
	file := filepath.Join(home, "environment")
	if err := os.WriteFile(file, []byte("# all\nA=1\nexport B=\"two words\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := machineEnv(file); !slices.Equal(got, []string{"A=1", "B=two words"}) {
		t.Errorf("all logins have %q", got)
	}
}
