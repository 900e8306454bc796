package images

import (
	"context"
	"net"

	"dev.muster/agent/userfile"
)

// A registry tells where its tokens and layers are, and a user may run one. Connections are therefore the user's own:
// a firewall that looks at the owner of a socket lets root reach more, such as a cloud's metadata service.

// dialAs connects with a user's rights.
func dialAs(as userfile.Identity) func(ctx context.Context, network, address string) (net.Conn, error) {
	// A second family of addresses would be tried by another thread, with the rights of root.
	d := net.Dialer{Timeout: dialTime, FallbackDelay: -1}
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = userfile.Apart(as, func() error {
			conn, err = d.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}
