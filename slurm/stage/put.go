package stage

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"

	"dev.muster/cast"
	"dev.muster/slurm/front"
)

// blockSize is how much of a file is read at once.
const blockSize = 8 << 20

// About is what the nodes are told of a file.
func About(fi os.FileInfo) cast.About {
	a := cast.About{Mode: uint32(fi.Mode().Perm()), Size: fi.Size(), Modified: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		a.Accessed = st.Atim.Nano()
	}
	return a
}

// Put puts a file on all nodes, or on none: where one cannot take it, those that have it already keep no
// part of it. It takes its name only once it is whole everywhere.
func (n *Nodes) Put(o *cast.Order, from io.Reader) error {
	if err := n.Do(o); err != nil {
		return err
	}
	answers := make([]chan error, len(n.List)) // one that comes early says that a node cannot go on
	early := make(chan struct{}, len(n.List))
	for i, one := range n.List {
		answers[i] = make(chan error, 1)
		go func() { // ends with the answer, or with the node
			_, err := one.answer()
			answers[i] <- err
			early <- struct{}{}
		}()
	}
	err := n.send(from, early)
	if err != nil && err != errStopped {
		return err
	}
	end := make(map[*Node]chan error, len(n.List))
	for i, one := range n.List {
		end[one] = answers[i]
	}
	if err := n.each(func(one *Node) error { return n.arrived(end[one], err) }); err != nil {
		return err
	}
	return n.Do(&cast.Order{Commit: true})
}

// errStopped is that a node cannot go on.
var errStopped = errors.New("another node could not take the file")

// arrived waits until a file is whole on a node. If the others were stopped for one that failed, only
// that one has something to say.
func (n *Nodes) arrived(answer chan error, sent error) error {
	if sent == nil {
		return <-answer
	}
	select {
	case err := <-answer:
		return err
	default:
		return nil
	}
}

// send reads the file and sends it, to all nodes at one pace.
func (n *Nodes) send(from io.Reader, early <-chan struct{}) error {
	var c cast.Chunks
	block := make([]byte, n.blockSize())
	for {
		size, err := io.ReadFull(from, block)
		if size > 0 {
			data := block[:size]
			head := c.Head(data)
			_ = n.each(func(one *Node) error {
				return errors.Join(one.to.Input(one.task, head), one.to.Input(one.task, data))
			})
		}
		select {
		case <-early:
			return errStopped
		default:
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			end := c.End()
			return n.each(func(one *Node) error { return one.to.Input(one.task, end) })
		default:
			return err
		}
	}
}

func (n *Nodes) blockSize() int {
	if n.Block > 0 {
		return min(n.Block, blockSize)
	}
	return blockSize
}

// LibsDir is where the libraries of a program go.
func LibsDir(dest string) string { return dest + "_libs" }

// noLibs are the folders whose libraries every node has, where nothing else is said.
const noLibs = "/lib,/usr/lib,/lib64,/usr/lib64"

// Libraries lists what a program loads, as the loader says, without what lies in folders that are left
// out; NONE leaves out none.
func Libraries(s *front.Sys, program, exclude string) (files []string, ok bool) {
	text, ok := front.Output("ldd", program)
	if !ok {
		s.Say("error: Cannot autodetect libraries for '%s' with ldd command; "+
			"still sending the file but ignoring send_libs", program)
		return nil, false
	}
	if exclude == "" {
		exclude = noLibs
	}
	for line := range strings.Lines(text) {
		_, path, found := strings.Cut(line, "=>")
		if !found {
			path = line
		}
		words := strings.Fields(path)
		if len(words) == 0 || words[0][0] != '/' || left(words[0], exclude) {
			continue
		}
		files = append(files, words[0])
	}
	return files, true
}

// left reports whether a library is in one of the folders that are left out.
func left(file, exclude string) bool {
	if exclude == "NONE" {
		return false
	}
	for dir := range strings.SplitSeq(exclude, ",") {
		if dir != "" && strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// PutLibraries puts the libraries of a program beside it.
func (n *Nodes) PutLibraries(dest string, files []string) error {
	dir := LibsDir(dest)
	if err := n.Do(&cast.Order{Dir: dir}); err != nil {
		return err
	}
	for _, file := range files {
		name := file[strings.LastIndexByte(file, '/'):]
		if err := n.PutFile(file, cast.Order{Put: dir + name, Force: true}); err != nil {
			return err
		}
	}
	return nil
}

// PutFile puts a file of this machine on all nodes.
func (n *Nodes) PutFile(file string, o cast.Order) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	o.About = About(fi)
	return n.Put(&o, f)
}
