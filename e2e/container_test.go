package e2e

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const busybox = "/bin/busybox"

// tools are what the image's busybox is called.
var tools = strings.Fields("sh cat ls id env touch mkdir rm stat grep echo hostname sleep head pwd mount wc")

// layerOf is a layer of an image: text files by name, links that begin with ->, folders that end with /.
func layerOf(t *testing.T, box bool, files ...string) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if box {
		text, err := os.ReadFile(busybox)
		if err != nil {
			t.Skip("no busybox-static for an image: ", err)
		}
		put(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, text)
		for _, n := range tools {
			put(tar.Header{Name: "bin/" + n, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
		}
	}
	for _, f := range files {
		path, text, _ := strings.Cut(f, "=")
		switch to, link := strings.CutPrefix(text, "->"); {
		case strings.HasSuffix(path, "/"):
			put(tar.Header{Name: path, Typeflag: tar.TypeDir, Mode: 0o755}, nil)
		case link:
			put(tar.Header{Name: path, Typeflag: tar.TypeSymlink, Linkname: to}, nil)
		default:
			put(tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o755}, []byte(text))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf is the image of the tests: two layers, of which the second takes a file of the first away.
func imageOf(t *testing.T) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image,
		layerOf(t, true, "etc/os-release=ID=tiny\n", "etc/gone=x", "etc/passwd=root:x:0:0::/:/bin/sh\n",
			"root/secret=s", "app/", "data=->/app", "etc/resolv.conf=->../run/r"),
		layerOf(t, false, "etc/.wh.gone=", "etc/second=2\n", "entry=#!/bin/sh\necho entered\nexec \"$@\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.Config = v1.Config{
		Env: []string{"PATH=/bin", "COLOUR=image", "ONLY=image"}, WorkingDir: "/app",
		Entrypoint: []string{"/entry"}, User: "root",
	}
	cfg.Architecture, cfg.OS = "amd64", "linux"
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		t.Fatal(err)
	}
	return img
}

// hub is a registry: what is below private/ wants the password.
type hub struct {
	host  string
	blobs int          // GETs of layers
	hang  atomic.Int32 // calls that are not answered
}

// slowly sends an answer in pieces, with a pause behind each large one: a layer of busybox takes some seconds.
type slowly struct{ http.ResponseWriter }

func (s *slowly) Write(p []byte) (n int, err error) {
	const piece = 32 << 10
	for n < len(p) && err == nil {
		var k int
		k, err = s.ResponseWriter.Write(p[n:min(n+piece, len(p))])
		if n += k; k == piece {
			s.ResponseWriter.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}
	return n, err
}

const hubUser, hubPassword = "reader", "open-sesame"

func startHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if strings.HasPrefix(r.URL.Path, "/v2/private/") && (user != hubUser || password != hubPassword) {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v2/hang/") {
			h.hang.Add(1)
			defer h.hang.Add(-1)
			<-r.Context().Done()
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v2/slow/") && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			w = &slowly{w}
		}
		if r.URL.Path == "/v2/" {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			if user == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			h.blobs++
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	h.host = strings.TrimPrefix(srv.URL, "http://")
	return h
}

func (h *hub) push(t *testing.T, img v1.Image, image string) {
	t.Helper()
	ref, err := name.ParseReference(h.host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithAuth(&authn.Basic{Username: hubUser, Password: hubPassword})); err != nil {
		t.Fatal(err)
	}
}

func needsContainers(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	if _, err := os.Stat(busybox); err != nil {
		t.Skip("no busybox-static for an image: ", err)
	}
}

// TestContainer has a row for what each option of Pyxis does.
func TestContainer(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	img := imageOf(t)
	h.push(t, img, "lab/tiny:1")
	h.push(t, img, "private/tiny:1")
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	tiny := "--container-image=" + h.host + "#lab/tiny:1"
	d.write("given", "of the node\n")
	d.file(0, "closed/open/file", "f\n")
	d.file(1, "mine/keep", "k\n")
	if err := os.Chmod(d.dir+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	const pyxis = "slurmstepd: error: pyxis: "
	for _, c := range []struct{ what, line, out, errs string }{
		{"the image is the root", tiny + " cat /etc/os-release /etc/second", "ID=tiny\n2\n", ""},
		{"a layer takes away", tiny + " ls /etc/gone", "", "No such file"},
		{"by digest", "--container-image=" + h.host + "/lab/tiny@" + digest.String() + " cat /etc/second", "2\n", ""},
		{"by URL", "--container-image=docker://" + h.host + "/lab/tiny:1 cat /etc/second", "2\n", ""},
		{
			"no such image", "--container-image=" + h.host + "#lab/none true", "",
			pyxis + "failed to import docker image: ",
		},
		{"as the user", tiny + " id -u", "1\n", ""},
		{"the user has a name", tiny + " id -un", "daemon\n", ""},
		{"files are the user's", tiny + " cat /root/secret", "s", ""},
		{"the root is read-only", tiny + " touch /new", "", "Read-only file system"},
		{"/tmp can be written to", tiny + " touch /tmp/new /run/new", "", ""},
		{"writable", tiny + " --container-writable sh -c", "", ""},
		{"the image's directory", tiny + " pwd", "/app\n", ""},
		{"workdir", tiny + " --container-workdir=/etc pwd", "/etc\n", ""},
		{
			"no such workdir", tiny + " --container-workdir=/none pwd", "",
			pyxis + "couldn't start container: couldn't chdir to /none: No such file or directory",
		},
		{"entrypoint", tiny + " --container-entrypoint echo x", "entered\nx\n", ""},
		{"no entrypoint", tiny + " --container-entrypoint --no-container-entrypoint echo x", "x\n", ""},
		{
			"the image's variables win",
			"--export=ALL,COLOUR=job,OTHER=job " + tiny + " sh -c 'echo $COLOUR $OTHER $ONLY $SLURM_PROCID'",
			"image job image 0\n", "",
		},
		{
			"env",
			"--export=ALL,COLOUR=job " + tiny + " --container-env=COLOUR,ONLY sh -c 'echo $COLOUR $ONLY'",
			"job image\n", "",
		},
		{
			"mount", tiny + " --container-mounts=" + d.dir + "/given:/app/in/given cat /app/in/given",
			"of the node\n", "",
		},
		{"mount in place", tiny + " --container-mounts=" + d.dir + "/mine ls " + d.dir + "/mine", "keep\n", ""},
		{"mount writes through", tiny + " --container-mounts=" + d.dir + "/mine:/m touch /m/made", "", ""},
		{"mount ro", tiny + " --container-mounts=" + d.dir + "/mine:/m:ro touch /m/new", "", "Read-only file system"},
		{
			"mount behind a link of the image",
			tiny + " --container-mounts=" + d.dir + "/given:/data/x cat /app/x", "of the node\n", "",
		},
		{
			"mount of what is closed", tiny + " --container-mounts=" + d.dir + "/closed:/m true", "",
			pyxis + "couldn't start container: --container-mounts: ",
		},
		{
			"mount of what is behind it", tiny + " --container-mounts=" + d.dir + "/closed/open:/m true",
			"", "permission denied",
		},
		{
			"mount point in what is closed",
			tiny + " --container-mounts=" + d.dir + ":/m," + d.dir + "/mine:/m/new true", "",
			"make the mount point /m/new: permission denied",
		},
		{
			"mount in /proc", tiny + " --container-mounts=" + d.dir + "/mine:/proc/sys true", "",
			"nothing is mounted in /proc",
		},
		{"what the supervisor has open", tiny + " --container-mounts=/proc/self/fd/3:/m true", "", "links of /proc"},
		{"a directory of the supervisor", tiny + " --container-workdir=/proc/self/fd/3 pwd", "", "couldn't chdir"},
		{"home", tiny + " --container-mount-home ls -d /usr/sbin/adduser", "/usr/sbin/adduser\n", ""},
		{"no home", tiny + " ls -d /usr/sbin/adduser", "", "No such file"},
		{"devices", tiny + " sh -c 'echo x >/dev/null; ls /dev/shm >/dev/null && echo ok'", "ok\n", ""},
		{"/sys is read-only", tiny + " grep -c '^sysfs /sys sysfs ro' /proc/mounts", "1\n", ""},
		{
			"root inside",
			tiny + " --container-remap-root " +
				"--container-mounts=" + d.dir + "/mine " +
				"sh -c 'id -u; id -g; touch " + d.dir + "/mine/root; stat -c %u /root/secret'",
			"0\n0\n0\n", "",
		},
		{
			"root has no more rights",
			tiny + " --container-remap-root --container-mounts=/etc:/m cat /m/shadow", "",
			"Permission denied",
		},
		{
			"root does not leave",
			tiny + " --container-remap-root --container-writable sh -c 'mount -t tmpfs x /mnt || mount -o " +
				"remount,rw /sys'",
			"", "ermission denied",
		},
		{
			"root installs",
			tiny + " --container-remap-root --container-writable sh -c 'echo x >/etc/new; stat -c %u /etc/new'",
			"0\n", "",
		},
		{"no new privileges", tiny + " grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n", ""},
		{"the node is not to be seen", tiny + " ls -d /etc/debian_version", "", "No such file"},
		{
			"the entry point's output", tiny + " --container-entrypoint --container-entrypoint-log echo x",
			"entered\nx\n", "",
		},
		{
			"a network of its own",
			tiny + " --container-unshare=net,ipc sh -c 'grep -c : /proc/net/dev; squeue -h -o %u'",
			"1\ndaemon\n", "",
		},
		{"the rest is the node's",
			tiny + " --container-unshare=uts sh -c '[ $(stat -L -c %i /proc/self/ns/net) = " +
				inode(t, "/proc/thread-self/ns/net") + " ] && [ $(stat -L -c %i /proc/self/ns/uts) != " +
				inode(t, "/proc/thread-self/ns/uts") + " ] && echo own'", "own\n", ""},
		{"four tasks", "-n4 " + tiny + " sh -c 'echo $SLURM_NTASKS'", "4\n4\n4\n4\n", ""},
		{"MPI's process manager",
			"--mpi=pmi2 -n2 " + tiny + " sh -c 'echo cmd=init pmi_version=1 pmi_subversion=1 >&$PMI_FD; read a " +
				"<&$PMI_FD; echo ${a%% *}'",
			"cmd=response_to_init\ncmd=response_to_init\n", ""},
		{"many at once", "-N2 -n16 " + tiny + " sh -c 'cat /etc/second >/dev/null'", "", ""},
		{"two nodes", "-N2 -l " + tiny + " cat /etc/second", "0: 2\n1: 2\n", ""},
		{"private", "--container-image=" + h.host + "#private/tiny:1 true", "", "answers 401 (unauthorized)"},
		{"the node answers inside", tiny + " squeue -h -o %u", "daemon\n", ""},
	} {
		if c.what == "writable" {
			c.line = tiny + " --container-writable sh -c 'echo w >/new; echo w >>/etc/second; rm " +
				"/etc/os-release; cat /new /etc/second; ls /etc/os-release'"
			c.out, c.errs = "w\n2\nw\n", "No such file"
		}
		t.Run(c.what, func(t *testing.T) {
			out, errs, code := d.line(1, "srun "+c.line)
			if sortedLines(out) != sortedLines(c.out) || !strings.Contains(errs, c.errs) || (code != 0) != (c.errs != "") {
				t.Errorf("srun %s\nout %q\nerr %q\ncode %d\nwant %q and %q", c.line, out, errs, code, c.out, c.errs)
			}
			if strings.HasPrefix(c.errs, pyxis) && code != 1 {
				t.Errorf("code %d, want 1", code)
			}
		})
	}
	for _, with := range []string{"", tiny} {
		out, errs, code := d.line(1,
			"salloc -Q sh -c 'srun "+with+" true; date +%s%N; for i in 1 2 3 4 5 6 7 8 9 10; do "+
				"srun "+with+" true; done; date +%s%N'")
		var from, to int64
		if _, err := fmt.Sscan(out, &from, &to); err != nil || code != 0 {
			t.Fatal(out, errs, err)
		}
		t.Logf("a step %q, from the beginning of srun to its end: %s", with, time.Duration((to-from)/10))
	}
	for _, f := range []string{"made", "root"} {
		info, err := os.Stat(d.dir + "/mine/" + f)
		if err != nil {
			t.Error(err)
		} else if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 1 {
			t.Errorf("%s is %d's", f, uid)
		}
	}
	if n := h.blobs; n != 3 {
		t.Errorf("%d layers and configurations were fetched, want 3: the image is unpacked once", n)
	}
	d.wait("what a step has written and used to be gone", func() bool {
		left, _ := filepath.Glob(d.dir + "/d/containers/steps/*")
		used, _ := filepath.Glob(d.dir + "/d/containers/uses/*")
		return len(left)+len(used) == 0
	})
	image := func(words ...string) string {
		out, errs, _ := d.run("muster", append(append([]string{"image"}, words...), "--data", d.dir+"/d")...)
		return out + errs
	}
	hold := exec.Command("/bin/sh", "-c", "exec srun "+tiny+" sleep 600")
	hold.Env, hold.Dir = d.env, d.dir
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	d.wait("the image to be in use", func() bool { return strings.Contains(image("ls"), "in use") })
	if out := image("rm", h.host+"/lab/tiny:1"); !strings.Contains(out, "a job of this node runs in it") {
		t.Errorf("an image was removed under a step: %s", out)
	}
	if err := hold.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = hold.Wait()
	d.wait("the image to be free", func() bool { return !strings.Contains(image("ls"), "in use") })
	if out := image("rm", h.host+"/lab/tiny:1"); out != "" || !strings.Contains(image("ls"), "0 images") {
		t.Errorf("muster image rm: %s; then: %s", out, image("ls"))
	}
}

func inode(t *testing.T, path string) string {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(st.Ino)
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// line runs a line of the shell as a user, in the daemon's folder.
func (d *dev) line(uid uint32, line string) (out, errs string, code int) {
	var o, e bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &o, &e, d.env, d.dir
	_ = cmd.Run() // the code says it
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// file writes a file and the folders that it lies in, as a user's.
func (d *dev) file(uid int, name, text string) {
	d.t.Helper()
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		defer os.Chown(filepath.Join(d.dir, dir), uid, uid)
	}
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	d.write(name, text)
	if err := os.Chown(path, uid, uid); err != nil {
		d.t.Fatal(err)
	}
}

// TestContainerPrivate: who has a right to an image gets it from the registry or the cache, and nobody else does.
func TestContainerPrivate(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "private/tiny:1")
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(1, "keys/.credentials",
		fmt.Sprintf("machine other login x password y\nmachine %s login %s password %s\n", h.host, hubUser,
			hubPassword))
	d.file(2, "docker/config.json", `{"auths":{"`+h.host+`":{"auth":"cmVhZGVyOm9wZW4tc2VzYW1l"}},"credsStore":"none"}`)
	if err := os.Chmod(d.dir+"/keys", 0o700); err != nil {
		t.Fatal(err)
	}
	helper := fmt.Sprintf("muster-test-%d", os.Getpid())
	program := "/usr/local/bin/docker-credential-" + helper
	t.Cleanup(func() { os.Remove(program) })
	script := "#!/bin/sh\nread r\n" +
		"[ $(id -u) = 3 ] && [ $r = " + h.host + " ] && " +
		"echo '{\"Username\":\"" + hubUser + "\",\"Secret\":\"" + hubPassword + "\"}'\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	d.file(3, "helped/config.json", `{"credHelpers":{"`+h.host+`":"`+helper+`"}}`)
	d.file(3, "store/config.json", `{"credsStore":"`+helper+`"}`)
	d.file(4, "none/config.json", `{"credsStore":"muster-none"}`)
	image := h.host + "#private/tiny:1"
	for _, c := range []struct {
		what  string
		uid   uint32
		env   string
		image string
		ok    bool
	}{
		{"without a password", 1, "A=b", image, false},
		{"enroot's", 1, "ENROOT_CONFIG_PATH=" + d.dir + "/keys", image, true},
		{"enroot's, by name", 1, "ENROOT_CONFIG_PATH=" + d.dir + "/keys", hubUser + "@" + image, true},
		{"enroot's, of somebody else", 1, "ENROOT_CONFIG_PATH=" + d.dir + "/keys", "other@" + image, false},
		{"another user's file", 2, "ENROOT_CONFIG_PATH=" + d.dir + "/keys", image, false},
		{"another user, and it is in the cache", 2, "A=b", image, false},
		{"docker's", 2, "DOCKER_CONFIG=" + d.dir + "/docker", image, true},
		{"a helper's", 3, "DOCKER_CONFIG=" + d.dir + "/helped", image, true},
		{"a store's", 3, "DOCKER_CONFIG=" + d.dir + "/store", image, true},
		{"a helper that has nothing for the user", 4, "DOCKER_CONFIG=" + d.dir + "/helped", image, false},
		{"a store that is not here", 4, "DOCKER_CONFIG=" + d.dir + "/none", image, false},
		{
			"a store that is not here, and an image for everybody", 4, "DOCKER_CONFIG=" + d.dir + "/none",
			h.host + "#lab/tiny:1", true,
		},
	} {
		out, errs, code := d.line(c.uid, c.env+" srun --container-image="+c.image+" cat /etc/second")
		if ok := code == 0 && out == "2\n"; ok != c.ok {
			t.Errorf("%s: %q %q %d", c.what, out, errs, code)
		}
		if c.what == "a store that is not here" && !strings.Contains(errs, "docker-credential-muster-none is "+
			"not on this node in /usr/local/bin") {
			t.Errorf("%s: %s", c.what, errs)
		}
	}
}

// TestContainerEvil: an image whose links lead out of it is not run, and nothing is done outside.
func TestContainerEvil(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	for name, links := range map[string][]string{
		"fd":    {"tmp=->/proc/self/fd/3"},
		"root":  {"etc=->/proc/1/root/etc"},
		"cwd":   {"usr=->/proc/thread-self/cwd"},
		"proc":  {"real/", "proc=->real"},
		"above": {"var=->../../../../var", "tmp=->/../../.." + d.dir},
		"names": {"etc/", "etc/passwd=->/proc/self/fd/3", "etc/hosts=->/proc/1/root" + d.dir + "/made"},
	} {
		img, err := mutate.AppendLayers(empty.Image, layerOf(t, true, links...))
		if err != nil {
			t.Fatal(err)
		}
		h.push(t, img, "lab/"+name)
		out, errs, code := d.line(0,
			"srun --container-writable "+
				"--container-mounts="+d.dir+"/d:/made/in --container-image="+h.host+"#lab/"+name+" /bin/echo ran")
		t.Logf("%s: %q %q %d", name, out, errs, code)
		if (code == 0) != (out == "ran\n") || code != 0 && !strings.Contains(errs, "slurmstepd: error: pyxis: couldn't start container: ") {
			t.Errorf("%s: %q %q %d", name, out, errs, code)
		}
	}
	for _, made := range []string{d.dir + "/made", "/made"} {
		if _, err := os.Lstat(made); err == nil {
			t.Errorf("%s was made on the node", made)
		}
	}
	if out, errs, code := d.run("srun", "true"); code != 0 {
		t.Error(out, errs)
	}
}

// TestContainerHang: a step that waits for a registry holds up nobody, and ends when it is cancelled.
func TestContainerHang(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	for range 6 { // more than launchers of a node
		d.line(1, "sbatch -o /dev/null --container-image="+h.host+"#hang/x --wrap true")
	}
	d.wait("helpers", func() bool { return h.hang.Load() >= 6 })
	if out, errs, code := d.line(1, "srun true; echo on"); out != "on\n" || code != 0 {
		t.Errorf("%q %q %d", out, errs, code)
	}
	done := make(chan string)
	go func() {
		_, errs, _ := d.line(1, "srun --container-image="+h.host+"#hang/y true")
		done <- errs
	}()
	d.wait("one more", func() bool { return h.hang.Load() >= 7 })
	time.Sleep(2500 * time.Millisecond)
	began := time.Now()
	d.must("scancel", "-u", "daemon")
	if errs := <-done; !strings.Contains(errs, "pyxis: importing docker image: "+h.host+"#hang/y\n") {
		t.Errorf("%q", errs)
	}
	d.wait("the jobs to end", func() bool { return d.must("squeue", "-h") == "" })
	if took := time.Since(began); took > patience(10*time.Second) {
		t.Errorf("it took %s", took)
	}
	d.wait("the helpers to end", func() bool { return h.hang.Load() == 0 })
}

// TestContainerProgress: who waits for an image for long is told how far it is, by a bar on a terminal.
func TestContainerProgress(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no terminal to look at: ", err)
	}
	h := startHub(t)
	h.push(t, imageOf(t), "slow/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	line := "script -qec 'srun --container-image=" + h.host + "#slow/tiny:1 cat /etc/second' /dev/null"
	out, errs, code := d.line(1, line)
	if code != 0 || !strings.Contains(out, "pyxis: importing docker image: "+h.host+"#slow/tiny:1") ||
		!strings.Contains(out, "\r[##") || !strings.Contains(out, "] 100% ") || strings.Count(out, "2\r\n") != 1 {
		t.Errorf("%q %q %d", out, errs, code)
	}
}

// TestContainerBatch: a batch script runs inside, with its arguments, and uses the cluster from there.
func TestContainerBatch(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(1, "jobs/script", "#!/bin/sh\n#SBATCH --container-image="+h.host+"#lab/tiny:1\n#SBATCH "+
		"--container-mounts=./\n"+
		"cat /etc/os-release; pwd; echo $1\nsrun -D / cat /etc/os-release | head -n 1\n"+
		"srun --container-image="+h.host+"#lab/tiny:1 cat /etc/second\n")
	out, errs, code := d.line(1, "cd "+d.dir+"/jobs && sbatch -W -o out script word")
	if code != 0 {
		t.Fatal(out, errs, code)
	}
	node, _ := os.ReadFile("/etc/os-release")
	first, _, _ := strings.Cut(string(node), "\n")
	expect(t, "the script's output", d.read("jobs/out"), "ID=tiny\n/app\nword\n"+first+"\n2\n")
	_, errs, code = d.line(1, "cd "+d.dir+"/jobs && sbatch -W -o bad --container-image="+h.host+"#lab/none --wrap true")
	if code != 1 || !strings.Contains(d.read("jobs/bad"), "slurmstepd: error: pyxis: failed to import docker image: ") {
		t.Errorf("%d %s %s", code, errs, d.read("jobs/bad"))
	}
	_, errs, code = d.line(1,
		"cd "+d.dir+"/jobs && sbatch -W -o bare --export=NONE "+
			"--container-image="+h.host+"#lab/tiny:1 --wrap 'echo $USER $HOME'")
	if code != 0 || d.read("jobs/bare") != "daemon /usr/sbin\n" {
		t.Errorf("%d %s %q", code, errs, d.read("jobs/bare"))
	}
	out, errs, code = d.as(1, "salloc", "-Q", "--container-image="+h.host+"#lab/tiny:1", "srun", "cat", "/etc/second")
	if out != "2\n" || code != 0 {
		t.Errorf("salloc: %q %q %d", out, errs, code)
	}
}

// TestContainerName: a container is kept for the job, entered while it runs, and gone with the job.
func TestContainerName(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(1, "jobs/job", `#!/bin/sh
image=`+h.host+`#lab/tiny:1
try() { echo "$@"; srun -D / "$@" 2>&1 | grep -v '^srun: error: node'; }
try --container-name=a cat /new
try --container-name=a --container-image=$image --container-writable sh -c 'echo one >/new'
try --container-name=a:create --container-image=$image true
try --container-name=a:exec true
try --container-name=a sh -c 'cat /new; pwd; (echo two >>/new) 2>/dev/null || echo refused'
try --container-name=b --container-image=$image ls /new
srun -D / --overlap --container-name=a --container-writable sh -c 'echo three >/tmp/mine; sleep 100' &
until [ "$(squeue -s -h -j $SLURM_JOB_ID -o %i | grep -c '[.][0-9]')" = 1 ]; do sleep 0.1; done
until srun -D / --overlap --container-name=a:exec cat /tmp/mine 2>/dev/null; do sleep 0.1; done
try --overlap --container-name=a:no_exec true
try --overlap --container-name=a --container-mounts=/etc:/m true
try --overlap --container-name=a sh -c 'echo four >>/new; cat /new'
scancel $SLURM_JOB_ID.$(squeue -s -h -j $SLURM_JOB_ID -o %i | grep -v batch | head -n 1 | sed 's/.*[.]//')
wait
try --container-name=a cat /new
`)
	if _, errs, code := d.line(1, "cd jobs && timeout 60 sbatch -W -o out job"); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	const pyxis = "slurmstepd: error: pyxis: "
	out := d.read("jobs/out")
	for _, want := range []string{
		"=a cat /new\n" + pyxis + "a container with name \"pyxis_a\" does not exist, and --container-image is " +
			"not set\n",
		pyxis + "error creating container: a container with name \"pyxis_a\" already exists\n",
		"=a:exec true\n" + pyxis + "couldn't start container: the container does not run, and exec only enters " +
			"one that does\n",
		"|| echo refused\none\n/app\nrefused\n",
		"ls /new\nls: /new: No such file or directory\n",
		"three\n",
		pyxis + "couldn't start container: container \"a\" is running, and no_exec forbids to enter it\n",
		pyxis + "couldn't start container: container \"a\" is running with other mounts: they cannot be changed\n",
		"cat /new\none\nfour\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	if !strings.HasSuffix(out, "=a cat /new\none\nfour\n") {
		t.Errorf("%q", out)
	}
	d.wait("the job's containers to be gone", func() bool {
		left, _ := filepath.Glob(d.dir + "/d/containers/jobs/*")
		return len(left) == 0
	})
}

// TestContainerPath: an image may be a folder or a squashed file, as enroot leaves them.
func TestContainerPath(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	root := d.dir + "/tree"
	d.file(1, "tree/etc/environment", "COLOUR=tree\n")
	d.file(1, "tree/etc/rc",
		"mkdir -p \"/deep\" 2> /dev/null\ncd \"/deep\" && unset OLDPWD || exit 1\necho entered\nexec \"$@\"\n")
	d.file(1, "tree/deep/here", "x")
	text, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	d.file(1, "tree/bin/busybox", string(text))
	if err := os.Chmod(root+"/bin/busybox", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range tools {
		if err := os.Symlink("busybox", root+"/bin/"+n); err != nil {
			t.Fatal(err)
		}
	}
	images := []string{root, "./tree"}
	if out, err := exec.Command("mksquashfs", root, d.dir+"/tree.sqsh", "-noappend", "-quiet", "-all-root").CombinedOutput(); err == nil {
		images = append(images, d.dir+"/tree.sqsh")
	} else {
		t.Logf("no .sqsh: %v %s", err, out)
	}
	for _, image := range images {
		out, errs, code := d.line(1,
			"cd "+d.dir+" && srun --export=ALL,PATH=/bin:$PATH,COLOUR=job "+
				"--container-image="+image+" --container-entrypoint sh -c 'pwd; ls; echo $COLOUR'")
		if out != "entered\n/deep\nhere\ntree\n" || code != 0 {
			t.Errorf("%s: %q %q %d", image, out, errs, code)
		}
	}
	for image, want := range map[string]string{
		"/root": "Permission denied", d.dir + "/none": "no such file or directory",
		d.dir + "/tree/deep/here.sqsh": "no such file",
		"/":                            "has another file system below it, at /",
	} {
		_, errs, code := d.as(1, "srun", "--container-image="+image, "true")
		if code != 1 || !strings.Contains(strings.ToLower(errs), strings.ToLower(want)) {
			t.Errorf("%s: %q %d, want %q", image, errs, code, want)
		}
	}
}

// TestContainerSave: what a step has written is in the file that it was saved to, with what the image says of its
// programs, and a file that could not be written is an error.
func TestContainerSave(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	if _, err := exec.LookPath("mksquashfs"); err != nil {
		t.Skip("no mksquashfs to save containers with: ", err)
	}
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(1, "out/keep", "x")
	d.file(1, "late/keep", "x")
	tiny, saved := "--container-image="+h.host+"#lab/tiny:1", d.dir+"/out/new.sqsh"
	const failed = "slurmstepd: error: pyxis: couldn't "
	for _, c := range []struct {
		what, line, out, errs string
		code                  int
	}{
		{
			"written",
			"cd out; srun " + tiny + " --container-writable --container-save=new.sqsh -n2 sh -c 'echo w " +
				">/etc/new.$SLURM_PROCID; [ $SLURM_PROCID != 0 ] || rm -f /etc/second'",
			"", "", 0,
		},
		{"seen again",
			"srun --container-image=" + saved + " --container-entrypoint sh -c 'cat /etc/new.*; ls " +
				"/etc/second; pwd; echo $ONLY; ls -l /usr/local/bin/squeue'",
			"entered\nw\nw\n/app\nimage\n", "/etc/second: No such file", 0},
		{
			"the job's code stays", "srun " + tiny + " --container-save=" + saved + " sh -c 'exit 3'", "",
			"exit code 3", 3,
		},
		{"saved again", "srun --container-image=" + saved + " cat /etc/second", "2\n", "", 0},
		{
			"of a name",
			"salloc -Q sh -c 'srun " + tiny + " --container-name=n --container-writable sh -c \"echo n " +
				">/etc/n\"; srun --container-name=n --container-save=" + saved + " busybox true'",
			"", "", 0,
		},
		{"seen of a name", "srun --container-image=" + saved + " cat /etc/n", "n\n", "", 0},
		{"by salloc's variable", "salloc -Q " + tiny + " --container-save=" + saved + " srun busybox true", "", "", 0},
		{
			"a folder that is closed", "srun " + tiny + " --container-save=/root/x.sqsh busybox true", "",
			failed + "start container: --container-save: write to /root: permission denied", 1,
		},
		{"a folder", "srun " + tiny + " --container-save=" + d.dir + "/out busybox true", "", "is a folder", 1},
		{"not any more",
			"srun " + tiny + " --container-mounts=" + d.dir + "/late:/l " +
				"--container-save=" + d.dir + "/late/x busybox chmod 500 /l",
			"",
			failed + "save container to " + d.dir + "/late/x: ", 1},
	} {
		out, errs, code := d.line(1, c.line)
		if c.what == "seen again" {
			out, _, _ = strings.Cut(out, "lrwx")
		}
		if out != c.out || !strings.Contains(errs, c.errs) || code != c.code {
			t.Errorf("%s: %s\n%q %q %d, want %q %q %d", c.what, c.line, out, errs, code, c.out, c.errs, c.code)
		}
	}
	if left, _ := filepath.Glob(saved + "*"); len(left) != 1 {
		t.Errorf("files of containers: %v", left)
	}
}
