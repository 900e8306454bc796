package client

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"

	"dev.muster/api"
)

// maxRebootOutput bounds what is logged of what the program says.
const maxRebootOutput = 4096

// reboot runs the program that restarts a node's machine, once for each request. Should that be
// forgotten, since the daemon was restarted meanwhile, it is run again: the machine has not been.
// Called with mu held; the program outlives the daemon.
func (c *Client) reboot(n *node, r *api.Reboot) {
	if r == nil || r.Issued.Equal(n.rebooted) {
		return
	}
	n.rebooted = r.Issued
	argv := strings.Fields(r.Program)
	if len(argv) == 0 {
		c.slog.Error("the machine can not be restarted: RebootProgram isn't defined", "node", n.name)
		return
	}
	c.slog.Warn("the machine is restarted", "node", n.name, "program", r.Program)
	cmd := exec.Command(argv[0], argv[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	go func() { // ends with the program; usually the machine does first
		if err := cmd.Run(); err != nil {
			c.slog.Error("the machine could not be restarted", "node", n.name, "program", r.Program, "err", err,
				"output", string(out.Bytes()[:min(out.Len(), maxRebootOutput)]))
		}
	}()
}
