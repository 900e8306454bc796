package stage

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"dev.muster/cast"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Sgather fetches a file from all nodes of a job. Each lies beside the others then, with the name of its
// node at the end of its own.
func Sgather(s *front.Sys, argv []string) int {
	var o options
	source, dest, code := begin(s, opt.Sgather, SgatherOptions, &o, argv)
	if code >= 0 {
		return code
	}
	from, err := absolute(s, source)
	to, werr := absolute(s, dest)
	if err = errors.Join(err, werr); err != nil {
		return s.Fail("%v", err)
	}
	j, code := o.job()
	if code != 0 {
		return code
	}
	defer j.Close()
	err = j.each(func(n *Node) error { return o.fetch(n, from, to+"."+string(n.Name)) })
	return said(s, err)
}

// fetch takes a file, or with -r a folder, from a node.
func (o *options) fetch(n *Node, from, to string) error {
	if o.tree {
		a, err := n.order(&cast.Order{List: from})
		if err == nil {
			return o.fetchAll(n, &a, from, to)
		}
		if !isErrno(err, syscall.ENOTDIR) {
			return err
		}
	}
	a, err := n.order(&cast.Order{Get: from})
	if err != nil {
		return err
	}
	if err := o.save(n.from, &a, to); err != nil {
		return err
	}
	return o.done(n, from)
}

// fetchAll takes what a folder on a node holds.
func (o *options) fetchAll(n *Node, what *cast.Answer, from, to string) error {
	err := os.Mkdir(to, os.FileMode(what.Mode)&os.ModePerm|0o700)
	if err != nil && !(o.force && errors.Is(err, os.ErrExist)) {
		return errno(err)
	}
	for _, name := range append(what.Files, what.Dirs...) {
		err := cast.CheckName(name)
		if err == nil {
			err = o.fetch(n, from+"/"+name, to+"/"+name)
		}
		if err != nil {
			return err
		}
	}
	return o.done(n, from)
}

// done removes what was taken from a node, unless it is to be kept.
func (o *options) done(n *Node, from string) error {
	if o.keep {
		return nil
	}
	_, err := n.order(&cast.Order{Remove: from})
	return err
}

// isErrno reports whether a node has said so.
func isErrno(err error, no syscall.Errno) bool {
	var failed *cast.Failed
	return errors.As(err, &failed) && failed.Errno == no
}

// errno makes an error of this machine one like those of nodes.
func errno(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return &cast.Failed{Errno: no, Text: no.Error()}
	}
	return err
}

// save writes a file that comes from a node. It takes its name once it is whole; where it cannot be
// written its node is not listened to any more.
func (o *options) save(from *bufio.Reader, what *cast.Answer, to string) error {
	if _, err := os.Lstat(to); err == nil && !o.force {
		return &cast.Failed{Errno: syscall.EEXIST, Text: "file exists"}
	}
	half := to + "." + strconv.Itoa(os.Getpid())
	f, err := os.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, os.FileMode(what.Mode)&os.ModePerm|0o200)
	if err != nil {
		return errno(err)
	}
	defer os.Remove(half)
	_, err = cast.ReadChunks(from, f)
	if err == nil && o.preserve {
		err = errors.Join(f.Chmod(os.FileMode(what.Mode)&os.ModePerm),
			os.Chtimes(half, time.Unix(0, what.Accessed), time.Unix(0, what.Modified)))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && o.force {
		err = os.Rename(half, to)
	} else if err == nil {
		err = os.Link(half, to)
	}
	return errno(err)
}
