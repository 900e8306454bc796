package gpu

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestXIDTable reads every row of the table.
func TestXIDTable(t *testing.T) {
	last := 0
	for line := range strings.Lines(xidTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		code, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 4 || code <= last || f[2] == "" || f[3] == "" {
			t.Errorf("row %q", line)
			continue
		}
		switch last = code; f[1] {
		case "ignore", "note", "drain", "drain_now":
		default:
			t.Errorf("row %q: action %s", line, f[1])
		}
		if _, ok := xids()[code]; !ok {
			t.Errorf("row %q was not read", line)
		}
	}
}

func TestJudge(t *testing.T) {
	g := cluster.GPU{Minor: 3, UUID: "GPU-x", PCI: "0000:1b:00.0", NVLinks: 18}
	well := Reading{GPU: g, NVLinkErrors: 5}
	with := func(change func(*Reading)) *Scan {
		r := well
		change(&r)
		return &Scan{Readings: []Reading{r}}
	}
	for _, c := range []struct {
		name   string
		now    *Scan
		events []Event
		want   []string
	}{
		{"well", with(func(*Reading) {}), nil, nil},
		{
			"fallen off", with(func(*Reading) {}), []Event{{"GPU-x", 79, 1}},
			[]string{"xid 79|drain_now|XID 79: GPU has fallen off the bus"},
		},
		{"an application's fault", with(func(*Reading) {}), []Event{{"GPU-x", 31, 1}}, nil},
		{
			"again", with(func(*Reading) {}), []Event{{"GPU-x", 48, 2}},
			[]string{"xid 48 (2 times)|drain|XID 48: double bit ECC error; a reset is due (2 times)"},
		},
		{
			"double bit", with(func(*Reading) {}), []Event{{"GPU-x", 48, 1}},
			[]string{"xid 48|drain|XID 48: double bit ECC error; a reset is due"},
		},
		{
			"unknown", with(func(*Reading) {}), []Event{{"GPU-x", 9999, 1}},
			[]string{"xid 9999|note|XID 9999: not in the table"},
		},
		{
			"lost", with(func(r *Reading) { r.Lost, r.ECCUncorrected = "GPU is lost", 1 }), nil,
			[]string{"lost|drain_now|GPU is lost"},
		},
		{"ecc", with(func(r *Reading) { r.ECCUncorrected = 2 }), nil, []string{"ecc 2|drain|2 uncorrected ECC errors"}},
		{"corrected", with(func(r *Reading) { r.ECCCorrected = 2000 }), nil, nil},
		{
			"pending", with(func(r *Reading) { r.RemapPending, r.RemappedBad = true, 1 }), nil,
			[]string{"remap pending|drain|row remapping is pending until a reset, 1 rows remapped so far"},
		},
		{
			"failed", with(func(r *Reading) { r.RemapFailed = true }), nil,
			[]string{"remap failed|drain|row remapping failed"},
		},
		{
			"pages", with(func(r *Reading) { r.RetirePending = true }), nil,
			[]string{"retirement pending|drain|page retirement is pending until a reset"},
		},
		{
			"a link", with(func(r *Reading) { r.NVLinksDown, r.GPU.NVLinks = 1, 17 }), nil,
			[]string{"nvlink down|note|17 NVLinks are up, 18 were passing"},
		},
		{"cut into slices", with(func(r *Reading) { r.NVLinksDown, r.GPU.NVLinks, r.MIG = 18, 0, true }), nil, nil},
		{"bridged in part", with(func(r *Reading) { r.NVLinksDown = 8 }), nil, nil},
		{
			"link errors", with(func(r *Reading) { r.NVLinkErrors = 5006 }), nil,
			[]string{"nvlink errors|note|5001 NVLink errors since the last look passing"},
		},
		{
			"hot", with(func(r *Reading) { r.TempC, r.SlowdownC = 90, 87 }), nil,
			[]string{"throttle|note|slowed by heat passing"},
		},
		{
			"braked", with(func(r *Reading) { r.Throttle = throttlePowerBrake | throttleHWSlowdown }), nil,
			[]string{"throttle|note|slowed by the power supply passing"},
		},
		{
			"fabric", with(func(r *Reading) { r.FabricState = "in progress" }), nil,
			[]string{"fabric|drain|NVLink fabric: in progress passing"},
		},
	} {
		var got []string
		for _, f := range Judge(&Scan{Readings: []Reading{well}}, c.now, c.events) {
			text, ok := strings.CutPrefix(f.Text, "GPU 3 (GPU-x 0000:1b:00.0): ")
			if !ok || f.Part != "GPU-x" {
				t.Errorf("%s: part %s, text %s", c.name, f.Part, f.Text)
			}
			if f.Passing {
				text += " passing"
			}
			got = append(got, fmt.Sprintf("%s|%s|%s", f.Cause, f.Action, text))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	switched := func(uuid string, links int) Reading {
		return Reading{
			GPU: cluster.GPU{UUID: uuid, Model: "NVIDIA H100 80GB HBM3", NVLinks: links, Switched: links > 0},
		}
	}
	down := Judge(nil, &Scan{Readings: []Reading{switched("a", 18), switched("b", 17), switched("c", 0)}}, nil)
	if len(down) != 2 || down[0].Part != "b" || down[0].Action != cluster.FaultDrain || !strings.HasSuffix(down[0].Text, "17 of 18 NVLinks are up") || down[1].Part != "c" {
		t.Errorf("links down beside others on switches: %+v", down)
	}
	stray := Judge(nil, &Scan{Readings: []Reading{well}}, []Event{{"GPU-y", 79, 1}})
	if len(stray) != 1 || stray[0].Text != "a GPU that is not listed GPU-y: XID 79: GPU has fallen off the bus" {
		t.Errorf("an event of a GPU that is not listed: %+v", stray)
	}
	f := Judge(nil, &Scan{Trouble: "the driver is not loaded", Cause: "driver"}, nil)
	if len(f) != 1 || f[0].Action != cluster.FaultNote || f[0].Part != "gpu" {
		t.Errorf("no driver: %+v", f)
	}
}

// TestCarry: a GPU that is not listed any more, or does not tell its name, is the one known before.
func TestCarry(t *testing.T) {
	a, b := Reading{GPU: cluster.GPU{UUID: "a", Index: 0}}, Reading{GPU: cluster.GPU{UUID: "b", Index: 1}}
	before := &Scan{Readings: []Reading{a, b}}
	now := &Scan{Readings: []Reading{a}}
	if carry(before, now); len(now.Readings) != 2 || now.Readings[1].Lost == "" || now.Readings[1].GPU.UUID != "b" {
		t.Errorf("%+v", now)
	}
	if d := now.Devices(); len(d) != 1 || d[0].UUID != "a" {
		t.Errorf("devices %+v", d)
	}
	now = &Scan{Readings: []Reading{a, {GPU: cluster.GPU{Index: 1}, Lost: "GPU is lost"}}}
	if carry(before, now); len(now.Readings) != 2 || now.Readings[1].GPU.UUID != "b" {
		t.Errorf("%+v", now)
	}
	now = &Scan{Trouble: "the driver is not loaded"}
	if carry(before, now); len(now.Devices()) != 2 {
		t.Errorf("%+v", now)
	}
}
