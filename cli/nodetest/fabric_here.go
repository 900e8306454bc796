package nodetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"dev.muster/burnin/bandwidth"
	"dev.muster/fabric"
)

// nobody is the user and group without rights.
const nobody = 65534

// FabricHere is muster internal burnin-fabric: the test of the network on one node, a task of the test's job. It
// returns the exit code.
func FabricHere([]string) int {
	p := &bandwidth.Peer{
		Node:  os.Getenv("SLURMD_NODENAME"),
		Addrs: bandwidth.Interfaces(),
		Out:   os.Stdout,
	}
	p.Job, _ = strconv.ParseUint(os.Getenv("SLURM_JOB_ID"), 10, 32)
	if p.Node == "" || p.Job == 0 {
		fmt.Fprintln(os.Stderr, "muster internal burnin-fabric: it is part of a job; "+
			"muster burnin --fabric NODES starts that")
		return 2
	}
	ports, _ := fabric.Look(os.DirFS("/sys")) // without ports, TCP remains
	for i := range ports {
		if r := &ports[i]; r.Active() {
			p.Ports = append(p.Ports, bandwidth.Port{
				Device: r.Device,
				Port:   r.Port,
				Gbits:  r.Gbits(),
			})
		}
	}
	if tool, err := exec.LookPath(bandwidth.IB); err == nil {
		p.Tool = tool
	}
	if err := dropRights(); err != nil {
		fmt.Fprintln(os.Stderr, "muster internal burnin-fabric: give up root's rights:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := p.Run(ctx, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "muster internal burnin-fabric:", err)
		return 1
	}
	return 0
}

// dropRights makes root's process one of nobody, which listens on the network and reads what others send.
func dropRights() error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
	if err != nil && onlyRoot() {
		return nil
	}
	return err
}

// onlyRoot reports whether this user namespace has no user but root, who is then an ordinary user of the machine.
func onlyRoot() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	var first, at, count int
	n, _ := fmt.Sscan(string(text), &first, &at, &count)
	return err == nil && n == 3 && first == 0 && count == 1
}
