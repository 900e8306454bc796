package e2e

import (
	"database/sql"
	"dev.muster/telemetry"
	"flag"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPage: a server shows its page where it is told to, and it follows the cluster; in a browser, if there is one,
// each view comes up without an error and asks no other host.
func TestPage(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "4x8c16g8gpu:h100", "--hollow-exec", "--http", addr)
	d.wait("four nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "4" })
	over := d.must("sbatch", "--parsable", "-n2", "--gpus=0", "-J", "over", "-o", d.dir+"/over-%j.out", "--wrap",
		"cd "+d.dir+"; echo epoch 9: saved to model-9.pt; "+
			"srun -n2 -J shards -o shards-%t.out sh -c 'echo task $SLURM_PROCID has read its shards'")
	d.wait("a job to be over", func() bool {
		return d.must("squeue", "-h", "-t", "CD", "-j", over, "-o",
			"%t") == "CD"
	})
	get := func(path string) string {
		t.Helper()
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%s: %d %v %s", path, r.StatusCode, err, b)
		}
		return string(b)
	}
	live, err := http.Get("http://" + addr + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	told := func() string {
		t.Helper()
		var b [256]byte
		n, err := live.Body.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	first := told()
	id := d.must("sbatch", "--parsable", "-N2", "--gpus-per-node=8", "-t", "7:00:00", "-J", "seen", "-o",
		d.dir+"/seen-%j.out", "--wrap",
		"for i in 1 2 3 4 5; do echo epoch $i: loss 0.$((90-i*7)); done; exec sleep 10000")
	d.must("sbatch", "-N4", "--gpus-per-node=8", "-o", "/dev/null", "--wrap", "true")
	if next := told(); next == first || !strings.Contains(next, "data: ") {
		t.Errorf("told %q, then %q", first, next)
	}
	d.wait("the job to run", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t") == "R" })
	for path, want := range map[string]string{"/": "16</a> <small>of 32 in use", "/queue": "seen", "/jobs/" +
		id: "running", "/metrics": "muster_gpus_used{type=\"h100\"} 16", "/healthz": "ok"} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %q is not in %s", path, want, body)
		}
	}

	b := startBrowser(t, d.dir)
	if b == nil {
		return
	}
	array := inhabit(t, d)
	pretendPast(t, d)
	base := "http://" + addr
	b.enter(logIn(t, d, addr))
	for name, path := range map[string]string{"overview": "/", "map": "/map?by=job", "plan": "/plan",
		"nodes": "/map?by=list",
		"queue": "/queue", "ended": "/queue?state=ended", "job": "/jobs/" + id, "live": "/jobs/" + id + "/log",
		"output": "/jobs/" + over + "/log", "step": "/jobs/" + over + "/log?step=0&task=1",
		"ask": "/nodes/gpu-node-001/drain", "node": "/nodes/gpu-node-001",
		"accounts": "/accounts", "reservations": "/reservations", "events": "/events", "idle": "/gpus/idle",
		"array": "/jobs/" + array} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(base, path, 390, scheme)
			if scheme == "light" && slices.Contains([]string{"overview", "queue", "job", "accounts"}, name) {
				b.keep(name + "-phone")
			}
			b.keepCurves(name, scheme+"-phone")
			b.look(base, path, 1440, scheme)
			says := map[string]string{"output": "saved to model-9.pt", "step": "task 1 has read its shards"}[name]
			if text := b.run("[document.body.innerText]"); !strings.Contains(text[0], says) {
				t.Errorf("%s of an ended job: %s", name, text)
			}
			if name == "job" { // its last lines come from its node
				d.wait("its last lines",
					func() bool { return strings.Contains(b.run("[document.body.innerText]")[0], "epoch 5") })
			}
			b.judge(name + ", " + scheme)
			b.keep(name + map[string]string{"light": "", "dark": "-dark"}[scheme])
			b.keepCurves(name, scheme)
		}
	}
}

// keepCurves keeps a picture of what a node's hardware did, which is below its jobs.
func (b *browser) keepCurves(name, as string) {
	b.t.Helper()
	if name != "node" || *screenshots == "" || as == "dark-phone" {
		return
	}
	b.run(`(document.querySelector("section:has(> .plots)").scrollIntoView(), [])`)
	b.keep(map[string]string{"light": "curves", "dark": "curves-dark", "light-phone": "curves-phone"}[as])
}

// maxPicture bounds what a picture may add to the repository.
const maxPicture = 150 << 10

// keep puts a picture of what is seen into the folder of screenshots, if one is given.
func (b *browser) keep(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	picture := b.picture()
	if len(picture) > maxPicture {
		b.t.Errorf("the picture of %s has %d bytes", name, len(picture))
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
		b.t.Error(err)
	}
}

var screenshots = flag.String("screenshots", "", "folder for pictures of the page's views (docs/screenshots)")

// inhabit makes a cluster in which each view has something to show.
func inhabit(t *testing.T, d *dev) (array string) {
	t.Helper()
	d.must("sacctmgr", "-i", "add", "account", "vision", "Fairshare=3")
	d.must("sacctmgr", "-i", "add", "account", "language", "Fairshare=5", "GrpTRESMins=gres/gpu=100000")
	d.must("sacctmgr", "-i", "add", "user", "root", "Account=language,vision")
	d.must("scontrol", "create", "reservation", "reservationname=maint", "starttime=now+3days",
		"duration=12:00:00", "nodes=gpu-node-004", "users=root")
	d.must("scontrol", "create", "reservation", "reservationname=course", "starttime=now+1days",
		"duration=2:00:00", "nodes=gpu-node-003", "users=root", "flags=daily")
	d.must("scontrol", "update", "nodename=gpu-node-004", "state=drain", "reason=row remapping failed on GPU 3")
	for i, name := range []string{"pretrain", "finetune", "evaluate", "sweep"} {
		d.must("sbatch", "-A", []string{"language", "vision"}[i%2], "-J", name, "-N"+strconv.Itoa(1+i),
			"--gpus-per-node=8", "-t", "12:00:00", "-o", "/dev/null", "--wrap", "exec sleep 10000")
	}
	held := d.must("sbatch", "--parsable", "-H", "-J", "not-yet", "-o", "/dev/null", "--wrap", "true")
	d.must("scancel", held)
	array = d.must("sbatch", "--parsable", "-J", "scan", "--array=0-39%6", "-c1", "--gpus=0", "-t", "30", "-o",
		"/dev/null",
		"--wrap", "i=$SLURM_ARRAY_TASK_ID; [ $i != 3 ] || exit 1; [ $i -lt 12 ] || exec sleep 10000")
	d.wait("tasks to end", func() bool {
		return d.must("squeue", "-h", "-r", "-j", array, "-t", "CD,F", "-o",
			"%i") != ""
	})
	return array
}

// pretended is what a node did at a time, one of whose GPUs is not like the others.
func pretended(at int64) []byte {
	s, wave := telemetry.New(telemetry.OfNode), math.Sin(float64(at)/9000)
	s.Own[telemetry.NodeCPU], s.Own[telemetry.NodeMem] = 45+20*wave, 310_000+60_000*wave
	for i := range 8 {
		v, mine := s.GPU(i).Values, wave+math.Sin(float64(at)/(700+90*float64(i)))/3
		v[telemetry.GPUUtil], v[telemetry.GPUMem] = min(88+9*mine, 100), 61_000+9000*wave
		v[telemetry.GPUPower], v[telemetry.GPUTemp] = 560+90*mine, 58+6*mine
		if i == 5 {
			v[telemetry.GPUUtil] -= 47
		}
	}
	return s.Pack()
}

// pretendPast makes up a day before the cluster began, for pictures alone.
func pretendPast(t *testing.T, d *dev) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.dir, "d", "acct", "history.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now, queue := time.Now().Unix()/60*60, 20.0
	for at := now - 86400; at < now-60; at += 300 {
		if _, err := db.Exec("INSERT OR IGNORE INTO hardware VALUES ('gpu-node-001', 0, ?, 300, ?)", at,
			pretended(at)); err != nil {
			t.Fatal(err)
		}
	}
	for at := now - 86400; at < now-60; at += 300 {
		used := min(18+9*math.Sin(float64(at%86400)/13751-2)+3*math.Sin(float64(at)/2500), 32)
		queue = max(queue+used/4-4.5+3*math.Sin(float64(at)/700), 0)
		for _, s := range []struct {
			kind, name        string
			total, used, lost float64
		}{{"gpu", "h100", 32, math.Round(used), 0}, {"node", "", 4, 3, 0}, {"queue", "pending", 0,
			math.Round(queue), 0},
			{"queue", "running", 0, math.Round(used / 3), 0}, {"jobs", "started", 0, 3, 0}, {"jobs", "completed", 0,
				3, 0}} {
			if _, err := db.Exec("INSERT OR IGNORE INTO sample VALUES (60, ?, ?, ?, ?, ?, ?)", at, s.kind, s.name,
				s.total, s.used, s.lost); err != nil {
				t.Fatal(err)
			}
		}
	}
}
