package step

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"dev.muster/cluster"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// The messages between Remote and the supervisor. Each is a length (4 bytes, of the rest), a
// kind and a payload.
const (
	MsgHello   = 1  // Remote: first message of a control connection
	MsgAttach  = 2  // first message of a stream connection; payload: an ID
	MsgStart   = 10 // requests: number (4 bytes) + body
	MsgSignal  = 11
	MsgFreeze  = 12
	MsgList    = 13
	MsgForget  = 14
	MsgStop    = 15
	MsgUpgrade = 16
	MsgSay     = 17
	MsgRelease = 18
	MsgAdopt   = 19
	MsgReply   = 20 // supervisor: number + reply
	MsgPush    = 21 // supervisor: changed []Status
	MsgFull    = 22 // supervisor: every Status, first on a connection
	MsgSetNote = 23
	MsgMemory  = 24
)

// Limits of the control connection.
const (
	// MaxMessage bounds one control message. A Spec whose script and environment come near it
	// cannot be started.
	MaxMessage = 32 << 20
	// maxFirst bounds the first message of a connection.
	MaxFirst = 4 << 10
	// MaxConns bounds the connections the supervisor serves at a time.
	MaxConns = 1024
)

var errMessage = errors.New("malformed message")

func AppendMessage(b []byte, kind byte, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, kind)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// ReadMessage reads one message of at most limit bytes. Memory grows with what arrives, not
// with what the length claims.
func ReadMessage(r io.Reader, limit int) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n < 1 || n > limit {
		return 0, nil, fmt.Errorf("%w: length %d, limit %d", errMessage, n, limit)
	}
	n--
	if n <= 64<<10 {
		body = make([]byte, n)
		_, err = io.ReadFull(r, body)
		return head[4], body, err
	}
	var b bytes.Buffer
	if _, err = io.CopyN(&b, r, int64(n)); err != nil {
		return 0, nil, err
	}
	return head[4], b.Bytes(), nil
}

func Number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func CutNumber(b []byte) (uint32, []byte, error) {
	if len(b) < 4 {
		return 0, nil, errMessage
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}

func cutBlob(b []byte) (blob, rest []byte, err error) {
	n, b, err := CutNumber(b)
	if err != nil || int64(n) > int64(len(b)) {
		return nil, nil, errMessage
	}
	return b[:n:n], b[n:], nil
}

// encodeSpecs writes specs as JSON with their environments and scripts, which JSON would
// make slow and long, as plain bytes behind it.
func encodeSpecs(specs []Spec) ([]byte, error) {
	bare := make([]Spec, len(specs))
	copy(bare, specs)
	for i := range bare {
		bare[i].Env, bare[i].Script = nil, nil
	}
	j, err := wire.Marshal(bare)
	if err != nil {
		return nil, err
	}
	n := 4 + len(j)
	for _, s := range specs {
		n += 8 + len(s.Env) + len(s.Script)
	}
	b := append(binary.BigEndian.AppendUint32(make([]byte, 0, n), uint32(len(j))), j...)
	for _, s := range specs {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s.Env))), s.Env...)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s.Script))), s.Script...)
	}
	return b, nil
}

func DecodeSpecs(b []byte) (specs []Spec, err error) {
	j, b, err := cutBlob(b)
	if err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(j, &specs); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	for i := range specs {
		var env, script []byte
		if env, b, err = cutBlob(b); err == nil {
			script, b, err = cutBlob(b)
		}
		if err != nil {
			return nil, err
		}
		specs[i].Env, specs[i].Script = cluster.BlobText(env), cluster.BlobText(script)
	}
	if len(b) != 0 {
		return nil, errMessage
	}
	return specs, nil
}

type SignalRequest struct {
	ID    ID    `json:"id"`
	Sig   int   `json:"sig"`
	Scope Scope `json:"scope"`
}

type NoteRequest struct {
	ID   ID     `json:"id"`
	Note []byte `json:"note"`
}

type FreezeRequest struct {
	ID   ID   `json:"id"`
	Stop bool `json:"stop"`
}

// Reply answers a request; Errno keeps the kernel's error comparable over the socket.
type Reply struct {
	Error   string   `json:"error,omitempty"`
	Errno   int      `json:"errno,omitempty"`
	Unknown bool     `json:"unknown,omitempty"`
	List    []Status `json:"list,omitempty"`
}

func ReplyTo(err error) Reply {
	if err == nil {
		return Reply{}
	}
	r := Reply{Error: err.Error(), Unknown: errors.Is(err, ErrUnknown)}
	var no unix.Errno
	if errors.As(err, &no) {
		r.Errno = int(no)
	}
	return r
}

func (r Reply) err() error {
	switch {
	case r.Error == "":
		return nil
	case r.Unknown:
		return ErrUnknown
	case r.Errno != 0:
		return fmt.Errorf("supervisor: %s: %w", r.Error, unix.Errno(r.Errno))
	}
	return errors.New("supervisor: " + r.Error)
}

// File names in the supervisor's directory.
const (
	SockName    = "supervisor.sock"
	LockName    = "supervisor.lock"
	LogName     = "supervisor.log"
	JournalName = "journal"
	HostsName   = "hosts"
)

// SockPath is a path to the socket short enough for a socket address; done releases it.
func SockPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, SockName)
	if len(path) < 100 {
		return path, func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + SockName, func() { unix.Close(fd) }, nil
}

// Friendly reports whether the process at the other end is root or of our own user.
func Friendly(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	cred, err := peer(raw)
	return err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Geteuid())
}

// peer is the process at the other end of a connection, as the kernel says.
func peer(raw syscall.RawConn) (cred *unix.Ucred, err error) {
	cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, cmp.Or(cerr, err)
}

// AdoptRequest names a step and a process that is to be part of it.
type AdoptRequest struct {
	ID  ID  `json:"id"`
	PID int `json:"pid"`
}

// MemoryRequest names a job on a node and the memory that it has there.
type MemoryRequest struct {
	ID ID            `json:"id"`
	MB cluster.MemMB `json:"mb"`
}

// SayRequest names a step and a line of the node's own.
type SayRequest struct {
	ID   ID     `json:"id"`
	Text string `json:"text"`
	Only bool   `json:"only,omitempty"` // it does not say that the step is being ended
}
