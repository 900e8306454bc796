package cli

import (
	"errors"
	"fmt"
	"net"
)

// Variables that systemd sets for a service.
const (
	notifyEnv  = "NOTIFY_SOCKET"
	journalEnv = "JOURNAL_STREAM"
)

// notify tells systemd that the daemon is ready; where there is no socket, nobody wants to know.
func notify(socket string) error {
	if socket == "" {
		return nil
	}
	c, err := net.Dial("unixgram", socket)
	if err != nil {
		return fmt.Errorf("reach systemd: %w", err)
	}
	_, err = c.Write([]byte("READY=1"))
	return errors.Join(err, c.Close())
}
