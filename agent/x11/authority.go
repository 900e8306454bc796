package x11

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A file of cookies is a row of entries: whose display, its number, the kind of proof, the proof. A program that
// reaches a display by localhost looks for one of its own machine; in a container that has another name, for any.
const (
	familyLocal = 256
	familyWild  = 65535
	cookieKind  = "MIT-MAGIC-COOKIE-1"
)

func entries(host string, number int, cookie []byte) []byte {
	own := entry(familyLocal, host, number, cookie)
	return append(own, entry(familyWild, "", number, cookie)...)
}

func entry(family uint16, host string, number int, cookie []byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, family)
	for _, part := range [][]byte{[]byte(host), []byte(strconv.Itoa(number)), []byte(cookieKind), cookie} {
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
	}
	return out
}

// xauthTime bounds how long the program xauth may take, which waits for its lock.
const xauthTime = 15 * time.Second

// addHome adds an entry to the file in the owner's home, which other programs write, too: the program xauth keeps them
// apart. It runs as the owner.
func addHome(o Options, number int) (file string, forget func(), err error) {
	if o.Owner.Home == "" {
		return "", nil, errors.New("X11Parameters=home_xauthority: this node knows no home of the job's user")
	}
	file = filepath.Join(o.Owner.Home, ".Xauthority")
	at := o.Host + "/unix:" + strconv.Itoa(number)
	if err := xauth(o.Owner, file, "add "+at+" "+cookieKind+" "+o.Cookie); err != nil {
		return "", nil, err
	}
	return file, func() { go func() { _ = xauth(o.Owner, file, "remove "+at) }() }, nil // it has a limit
}

// xauth has the program do something, which it reads from its input: a cookie is not for others to see.
func xauth(u Owner, file, what string) error {
	program, err := exec.LookPath("xauth")
	if err != nil {
		return errors.New("X11Parameters=home_xauthority needs the program xauth on this node: install package xauth")
	}
	cmd := exec.Command(program, "-q", "-f", file, "source", "-")
	cmd.Env = []string{"HOME=" + u.Home, "PATH=/usr/bin:/bin"}
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(what+"\n")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	if os.Geteuid() == 0 {
		cred := &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start xauth: %w", err)
	}
	late := time.AfterFunc(xauthTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("xauth -f %s: %w: %s", file, err, strings.TrimSpace(said.String()))
	}
	return nil
}
