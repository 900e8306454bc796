// Package sockowner finds, as the kernel knows it, which user of this machine holds the other end of a connection.
// Start with Of.
package sockowner

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// established is the state of a connection that both ends hold. One whose other end is closed is nobody's, and looks
// like root's; so does one that was not accepted yet.
const established = 1

// Of returns the user who holds the other end of a connection over IPv4 within this machine.
func Of(conn net.Conn) (uid uint32, err error) {
	near := ipv4(conn.LocalAddr())
	far := ipv4(conn.RemoteAddr())
	if near == nil || far == nil {
		return 0, fmt.Errorf("%v is no connection over IPv4", conn.RemoteAddr())
	}
	return Find(far, near)
}

// ipv4 is an address as the kernel takes it; nil if it is another kind.
func ipv4(addr net.Addr) *unix.SockaddrInet4 {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return nil
	}
	return &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}
}

// Find returns the user who holds the end of a connection of this machine that is at from, and whose other end is at
// to.
func Find(from, to *unix.SockaddrInet4) (uid uint32, err error) {
	if uid, err = askOwner(from, to); err == nil {
		return uid, nil
	}
	file, err := os.Open("/proc/net/tcp") // the kernel lacks tcp_diag
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return findOwner(file, from, to)
}

// Sizes and places in what is said to the kernel and by it (linux/inet_diag.h).
const (
	byFamily   = 20 // SOCK_DIAG_BY_FAMILY
	sizeHeader = 16
	sizeAsk    = sizeHeader + 56
	sizeAnswer = sizeHeader + 72
	atID       = sizeHeader + 4  // of an answer; in a question 4 bytes on
	atUID      = sizeHeader + 64 // of an answer
	sizePorts  = 4
	sizeAddr   = 16
)

// askOwner asks the kernel for the one connection.
func askOwner(from, to *unix.SockaddrInet4) (uid uint32, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	order := binary.NativeEndian
	ask := make([]byte, sizeAsk)
	order.PutUint32(ask, sizeAsk)
	order.PutUint16(ask[4:], byFamily)
	order.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	ask[sizeHeader], ask[sizeHeader+1] = unix.AF_INET, unix.IPPROTO_TCP
	order.PutUint32(ask[sizeHeader+4:], 1<<established)
	id := ask[atID+4:]
	binary.BigEndian.PutUint16(id, uint16(from.Port))
	binary.BigEndian.PutUint16(id[2:], uint16(to.Port))
	copy(id[sizePorts:], from.Addr[:])
	copy(id[sizePorts+sizeAddr:], to.Addr[:])
	order.PutUint64(id[sizePorts+2*sizeAddr+4:], ^uint64(0)) // any cookie
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, err
	}
	ours := n >= sizeAnswer &&
		order.Uint16(answer[4:]) == byFamily &&
		answer[sizeHeader+1] == established &&
		string(answer[atID:atID+sizePorts]) == string(id[:sizePorts])
	if !ours {
		return 0, fmt.Errorf("the kernel tells of no connection from port %d to port %d", from.Port, to.Port)
	}
	return order.Uint32(answer[atUID:]), nil
}

// findOwner finds the connection in the kernel's table of all.
func findOwner(table io.Reader, from, to *unix.SockaddrInet4) (uid uint32, err error) {
	first, second := inTable(from), inTable(to)
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		w := strings.Fields(lines.Text()) // number, from, to, state, queues, timer, retries, user
		if len(w) < 8 {
			continue
		}
		ours := w[1] == first &&
			w[2] == second &&
			w[3] == fmt.Sprintf("%02X", established)
		if ours {
			_, err := fmt.Sscanf(w[7], "%d", &uid)
			return uid, err
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("/proc/net/tcp has no connection from port %d to port %d", from.Port, to.Port)
}

// inTable is an address as the table has it.
func inTable(a *unix.SockaddrInet4) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.Addr[:]), a.Port)
}
