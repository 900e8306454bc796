package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestHookNoNewPrivs: where the partition forbids new rights, the hooks of a container gain none either. They are run
// outside of it, and may be the user's own.
func TestHookNoNewPrivs(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	id, image, hook := filepath.Join(g.own, "id"), filepath.Join(g.own, "image"), filepath.Join(g.own, "hook.sh")
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.WriteFile(id, text, 0o755), os.Chmod(id, 0o755|os.ModeSetuid), os.Mkdir(image, 0o755),
		os.WriteFile(hook, []byte("#!/bin/sh\n"+id+" -u >$SAID\n"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for forbidden, want := range map[bool]string{false: "0", true: fmt.Sprint(bob)} {
		said := filepath.Join(g.own, fmt.Sprint("said-", forbidden))
		st := g.run(g.asBob(func(sp *step.Spec) {
			sp.NoNewPrivs = forbidden
			sp.Env = append(sp.Env, "SAID="+said+"\x00"...)
			sp.Container = &container.Spec{Container: cluster.Container{Image: image}, Self: selfExe(t),
				Store: filepath.Join(filepath.Dir(g.own), "store"), Site: &enroot.Site{Hooks: []string{hook}}}
		}))
		got, err := os.ReadFile(said)
		if err != nil {
			t.Fatalf("%v, %+v, %s", err, st.Tasks[0], g.text(st.ID))
		}
		if strings.TrimSpace(string(got)) != want {
			t.Errorf("no_new_privs %v: the hook runs as %s, want %s", forbidden, got, want)
		}
	}
}
