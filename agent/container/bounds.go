package container

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds on what the files of a user, an image or a bundle make the supervisor hold for the launch of one step. It
// launches the steps of all users.
const (
	// maxOwnBytes bounds the texts of a user's files of enroot, and maxOwnNames the names in one of their folders.
	maxOwnBytes = 1 << 20
	maxOwnNames = 1 << 10
	// maxMounts bounds the mounts that the user and the site ask for: each holds a descriptor.
	maxMounts    = 512
	maxVariables = 16 << 10
	// maxVariable and maxEnviron bound a variable and all of them, in bytes: execve(2) takes no more.
	maxVariable = 128 << 10
	maxEnviron  = 6 << 20
	maxPath     = 4 << 10
)

// checkVariables refuses more variables than a program can be started with.
func checkVariables(list []string) error {
	if len(list) > maxVariables {
		return fmt.Errorf("the container has more than %d variables", maxVariables)
	}
	sum := 0
	for _, v := range list {
		sum += len(v)
	}
	if sum > maxEnviron {
		return fmt.Errorf("the variables of the container take more than %d bytes", maxEnviron)
	}
	return nil
}

// roomForMount refuses one mount more than the bound.
func roomForMount(b *build) error {
	if len(b.user)+len(b.extra) >= maxMounts {
		return fmt.Errorf("the container has more than %d mounts of its user and its site", maxMounts)
	}
	return nil
}

// merge returns variables with more, each in the place of the first of its name.
func merge(base []string, more ...string) []string {
	all := slices.Clone(base)
	at := make(map[string]int, len(base)+len(more))
	for i, v := range all {
		if name, _, _ := strings.Cut(v, "="); at[name] == 0 {
			at[name] = i + 1
		}
	}
	for _, v := range more {
		name, _, _ := strings.Cut(v, "=")
		if i := at[name]; i > 0 {
			all[i-1] = v
			continue
		}
		all = append(all, v)
		at[name] = len(all)
	}
	return all
}

// setOf is the set of some texts.
func setOf(list []string) map[string]bool {
	in := make(map[string]bool, len(list))
	for _, v := range list {
		in[v] = true
	}
	return in
}

// namesOf is the set of the names of variables.
func namesOf(env []string) map[string]bool {
	in := make(map[string]bool, len(env))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		in[name] = true
	}
	return in
}
