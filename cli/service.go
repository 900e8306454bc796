package cli

import (
	"errors"
	"fmt"
	"net"
)

// notifyEnv is the variable with the socket that systemd wants to be notified by.
const notifyEnv = "NOTIFY_SOCKET"

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
