package front

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dev.muster/api"
)

// A peer can be a cluster that runs Slurm. The user's own process calls that Slurm's command then, on this host or by
// ssh, with the options that the user gave: no daemon has a part in it.

// Bounds of a command of Slurm.
const (
	slurmSilence  = 30 * time.Second // without output
	slurmTestTime = 10 * time.Second // of a forecast
	slurmConnect  = "ConnectTimeout=10"
	maxSlurmWords = 64 << 10 // of a forecast's output, in bytes
)

// foreign is what a command knows of peers that run Slurm.
type foreign struct {
	peers []api.PeerInfo                 // known once clusters were named
	words func() (words, given []string) // of the command line without clusters, and its options; nil: not known
}

// slurmCaller calls the commands of peers that run Slurm.
type slurmCaller struct{ *Sys }

// slurmCall is one call of a command of a Slurm.
type slurmCall struct {
	peer  *api.PeerInfo
	words []string // its arguments
	env   []string // variables besides those of the user
	in    io.Reader
	out   io.Writer
	errs  io.Writer
	limit time.Duration // without output; 0: none
	here  bool          // it acts in the working directory
}

// slurmNamed returns the Slurm of that name, nil if that cluster runs muster.
func (s slurmCaller) slurmNamed(name string) *api.PeerInfo {
	i := slices.IndexFunc(s.foreign.peers, func(p api.PeerInfo) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.foreign.peers[i]
}

// ownSlurm says why this process may not call programs for the user; "" if it may.
func (s slurmCaller) ownSlurm(name string) string {
	if s.NoFiles || s.Direct != nil || s.token || s.Getwd == nil {
		return fmt.Sprintf("cluster %s runs Slurm: use its commands on a login host of this cluster, "+
			"without a token", name)
	}
	return ""
}

// showSlurm runs the command at a Slurm, below the heading that Slurm prints, and returns its exit code.
func (s slurmCaller) showSlurm(p *api.PeerInfo) int {
	if why := s.ownSlurm(p.Name); why != "" {
		return s.Fail("%s", why)
	}
	if s.foreign.words == nil {
		return s.Fail("%s cannot be asked from here", p.Name)
	}
	words, given := s.foreign.words()
	has := func(long string) bool { return slices.Contains(given, long) }
	if slices.Contains([]string{"squeue", "sinfo"}, s.Prog) && !has("noheader") && !has("json") && !has("yaml") {
		_, _ = io.WriteString(s.Stdout, s.ClusterHead(p.Name))
	}
	c := slurmCall{peer: p, words: words, in: s.Stdin, out: s.Stdout, errs: s.Stderr, limit: slurmSilence}
	if has("interactive") || len(words) == 0 && s.Prog == "scontrol" { // a person takes time
		c.limit = 0
	}
	return s.callSlurm(&c)
}

// callSlurm calls a command of Slurm, says so if it could not be called, and returns its exit code.
func (s slurmCaller) callSlurm(c *slurmCall) int {
	code, err := s.runSlurm(c)
	if err != nil {
		return s.Fail("cluster %s: %v", c.peer.Name, err)
	}
	return code
}

// errSilent says that a command printed nothing for too long.
var errSilent = errors.New("no answer")

// runSlurm calls a command of Slurm and returns its exit code. An error says that it was not run, or did not answer.
func (s slurmCaller) runSlurm(c *slurmCall) (code int, err error) {
	file, argv, env, err := s.slurmLine(c)
	if err != nil {
		return 0, err
	}
	code, err = runProgram(file, argv, env, c)
	switch {
	case errors.Is(err, errSilent):
		return 0, fmt.Errorf("%s: %w within %v", slurmProgram(s, c.peer), err, c.limit)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", slurmProgram(s, c.peer), err)
	case code == 255 && c.peer.Slurm.Host != "":
		s.Say("why: ssh to %s failed, or the command there ended with 255", c.peer.Slurm.Host)
	}
	return code, nil
}

// slurmProgram names the program that is called, and where.
func slurmProgram(s slurmCaller, p *api.PeerInfo) string {
	if p.Slurm.Host != "" {
		return p.Slurm.Host + ":" + p.Slurm.Bin + "/" + s.Prog
	}
	return p.Slurm.Bin + "/" + s.Prog
}

// slurmLine returns the program to start, its arguments and its environment.
func (s slurmCaller) slurmLine(c *slurmCall) (file string, argv, env []string, err error) {
	at := c.peer.Slurm
	file = at.Bin + "/" + s.Prog
	more := c.env
	if at.Conf != "" {
		more = append(slices.Clone(c.env), "SLURM_CONF="+at.Conf)
	}
	if at.Host == "" {
		if file, err = s.findSlurm(file); err != nil {
			return "", nil, nil, err
		}
		return file, append([]string{file}, c.words...), append(slurmEnviron(s.Environ), more...), nil
	}
	ssh, ok := LookPath("ssh", s.Getenv)
	if !ok {
		return "", nil, nil, errors.New("it is reached by ssh, and no ssh is in PATH")
	}
	dir := ""
	if c.here {
		if dir, err = s.Getwd(); err != nil {
			return "", nil, nil, err
		}
	}
	argv = []string{"ssh", "-o", "BatchMode=yes", "-o", slurmConnect}
	if in, ok := c.in.(*os.File); ok && IsTerminal(in) && slices.Contains([]string{"srun", "salloc"}, s.Prog) {
		argv = append(argv, "-t")
	}
	more = append(inputsOf(s.Prog, s.Environ), more...)
	return ssh, append(argv, at.Host, "--", RemoteLine(dir, more, append([]string{file}, c.words...))), s.Environ, nil
}

// findSlurm returns the program that a path leads to. It refuses one that is muster's own, or that root must not run.
func (s slurmCaller) findSlurm(file string) (string, error) {
	real, err := FindProgram(file, s.UID == 0)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	own, ownErr := os.Stat("/proc/self/exe")
	if err := errors.Join(err, ownErr); err != nil {
		return "", err
	}
	if os.SameFile(own, info) {
		return "", errors.New("it is a link to muster; an operator sets the folder of Slurm's commands: " +
			"muster peer add --slurm NAME --bin DIR")
	}
	return real, nil
}

// FindProgram returns the program to run for a path. For root that is what the path leads to, and it refuses one that
// others may change or replace: operators, who set the folder of a Slurm's commands, are not root.
func FindProgram(file string, forRoot bool) (string, error) {
	if !forRoot {
		return file, nil
	}
	real, err := resolve(file)
	if err != nil {
		return "", err
	}
	for at := real; ; at = path.Dir(at) {
		if !isRoots(at) {
			return "", fmt.Errorf("%s: users other than root may change %s: root does not run it", file, at)
		}
		if at == "/" {
			return real, nil
		}
	}
}

// resolve follows all links of a path.
func resolve(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// isRoots reports whether only root may change a file, or what is root's in a folder: in those with the sticky bit,
// such as /tmp, others cannot replace it.
func isRoots(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0
	return ok && st.Uid == 0 && (sticky || info.Mode()&0o022 == 0)
}

// RemoteLine is the line for the shell at the other end of ssh that runs words in dir ("": anywhere) with more
// variables.
func RemoteLine(dir string, env, words []string) string {
	var b strings.Builder
	if dir != "" {
		b.WriteString("cd " + ShellWord(dir) + " && ")
	}
	b.WriteString("exec env")
	for _, w := range slices.Concat(env, words) {
		b.WriteString(" " + ShellWord(w))
	}
	return b.String()
}

// ShellWord quotes a word for a shell.
func ShellWord(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// slurmEnviron is the environment for the commands of another cluster's Slurm. Variables of this cluster, of its jobs
// and of its tokens mean nothing there.
func slurmEnviron(environ []string) (out []string) {
	inJob := slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "SLURM_JOB_ID=") })
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case isClusterVariable(name), strings.HasPrefix(name, "MUSTER_"):
		case inJob && strings.HasPrefix(name, "SLURM") && name != "SLURM_TIME_FORMAT":
		default:
			out = append(out, v)
		}
	}
	return out
}

// isClusterVariable reports whether a variable says which cluster is meant, or who asks it.
func isClusterVariable(name string) bool {
	switch name {
	case "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_WORKING_CLUSTER":
		return true
	}
	return strings.HasSuffix(name, "_CLUSTERS")
}

// inputsOf are the variables that set options of a command, which ssh does not carry.
func inputsOf(prog string, environ []string) (out []string) {
	head := strings.ToUpper(prog) + "_"
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		plain := strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
		if plain && strings.HasPrefix(name, head) && !isClusterVariable(name) {
			out = append(out, v)
		}
	}
	return out
}

// runProgram runs a program until it ends, or prints nothing for longer than allowed.
func runProgram(file string, argv, env []string, c *slurmCall) (code int, err error) {
	var fed sync.WaitGroup
	last := new(atomic.Int64)
	last.Store(time.Now().UnixNano())
	attr := &os.ProcAttr{Env: env}
	var ends []*os.File // of the program, which this process closes
	var near []*os.File // of this process
	defer func() {
		for _, f := range slices.Concat(ends, near) {
			_ = f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		r, w, e := os.Pipe()
		err = cmp.Or(err, e)
		return r, w
	}
	in, ok := c.in.(*os.File)
	var feed *os.File
	if !ok && c.in != nil {
		in, feed = pipe()
		ends, near = append(ends, in), append(near, feed)
	}
	attr.Files = []*os.File{in}
	var copies []func()
	for _, w := range []io.Writer{c.out, c.errs} {
		if f, ok := w.(*os.File); ok && c.limit == 0 {
			attr.Files = append(attr.Files, f)
			continue
		}
		r, end := pipe()
		ends, near = append(ends, end), append(near, r)
		attr.Files = append(attr.Files, end)
		copies = append(copies, func() { _, _ = io.Copy(&stampedWriter{w, last}, r) })
	}
	if err != nil {
		return 0, err
	}
	p, err := os.StartProcess(file, argv, attr)
	for _, f := range ends {
		_ = f.Close()
	}
	ends = nil
	if err != nil {
		return 0, err
	}
	if feed != nil {
		go func() { _, _ = io.Copy(feed, c.in); _ = feed.Close() }()
	}
	for _, read := range copies {
		fed.Go(read)
	}
	return waitProgram(p, &fed, near, last, c.limit)
}

// waitProgram waits for a program and its output. One that is silent for too long is ended.
func waitProgram(p *os.Process, fed *sync.WaitGroup, near []*os.File, last *atomic.Int64, limit time.Duration) (
	code int, err error,
) {
	ended := make(chan struct{})
	var state *os.ProcessState
	go func() {
		fed.Wait()
		state, err = p.Wait()
		close(ended)
	}()
	for limit > 0 {
		left := time.Until(time.Unix(0, last.Load()).Add(limit))
		if left <= 0 {
			_ = p.Kill()
			for _, f := range near { // others may hold the other ends
				_ = f.Close()
			}
			<-ended
			return 0, errSilent
		}
		select {
		case <-ended:
			return exitCode(state, err)
		case <-time.After(left):
		}
	}
	<-ended
	return exitCode(state, err)
}

// exitCode is how a program ended, as a shell has it.
func exitCode(state *os.ProcessState, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	st, _ := state.Sys().(syscall.WaitStatus)
	if st.Signaled() {
		return 128 + int(st.Signal()), nil
	}
	return state.ExitCode(), nil
}

// stampedWriter notes when something was written last.
type stampedWriter struct {
	to   io.Writer
	last *atomic.Int64
}

// Write passes b on.
func (w *stampedWriter) Write(b []byte) (int, error) {
	w.last.Store(time.Now().UnixNano())
	return w.to.Write(b)
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	kept bytes.Buffer
	max  int
}

// Write keeps b as far as there is room, and drops the rest.
func (w *firstBytes) Write(b []byte) (int, error) {
	w.kept.Write(b[:min(len(b), w.max-w.kept.Len())])
	return len(b), nil
}
