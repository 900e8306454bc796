package sockowner

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwner: the kernel tells by both ways whose a connection is, and of one that is closed nothing.
func TestOwner(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := func(a net.Addr) *unix.SockaddrInet4 {
		tcp := a.(*net.TCPAddr)
		return &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}
	}
	from, to := at(client.LocalAddr()), at(client.RemoteAddr())
	inTable := func(from, to *unix.SockaddrInet4) (uint32, error) {
		table, err := os.Open("/proc/net/tcp")
		if err != nil {
			return 0, err
		}
		defer table.Close()
		return findOwner(table, from, to)
	}
	ways := map[string]func(from, to *unix.SockaddrInet4) (uint32, error){
		"the table": inTable, "either": Find, "a question": askOwner,
	}
	if _, err := askOwner(from, to); err != nil {
		t.Log("this kernel has no tcp_diag: ", err)
		delete(ways, "a question")
	}
	for name, owner := range ways {
		if uid, err := owner(from, to); err != nil || uid != uint32(os.Geteuid()) {
			t.Errorf("%s: user %d, %v", name, uid, err)
		}
	}
	client.Close()
	for name, owner := range ways {
		if uid, err := owner(from, to); err == nil {
			t.Errorf("%s: a closed connection is user %d's", name, uid)
		}
	}
}
