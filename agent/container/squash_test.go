package container

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestNoSquashfs: where the site does not want it, the kernel is not given a user's file.
func TestNoSquashfs(t *testing.T) {
	b := &build{Maker: &Maker{Spec: &Spec{Container: cluster.Container{Image: "/none/x.sqsh"}, NoSquashfs: true}}}
	err := b.squashed(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "/none/x.sqsh: squashfs files are not mounted here") {
		t.Error(err)
	}
}
