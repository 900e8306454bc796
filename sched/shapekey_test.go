package sched

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
	"dev.muster/sched/schedtest"
)

// TestShapeKeyIsComplete holds that all that place.NewDemand reads of a job is in the shape key: whatever one field of
// a spec is set to, jobs that come to one shape have equal demands. Else the second of two different jobs would be told
// what is true of the first. A new field of JobSpec or Layout is tried without a change here.
func TestShapeKeyIsComplete(t *testing.T) {
	read := map[string]bool{}
	for name, b := range shapeTestbeds(t) {
		for k, base := range shapeBases() {
			t.Run(fmt.Sprintf("%s/base %d", name, k), func(t *testing.T) {
				c := newCycle(b.S.Snapshot(), b.Now)
				for field, jobs := range variants(base) {
					read[field] = compareShapes(t, c, field, jobs) || read[field]
				}
			})
		}
	}
	maps.DeleteFunc(read, func(_ string, seen bool) bool { return !seen })
	t.Logf("newDemand reads %d fields: %s", len(read), strings.Join(slices.Sorted(maps.Keys(read)), " "))
	if len(read) < 40 {
		t.Error("these are too few: the values say little")
	}
}

// compareShapes compares each two jobs; it reports whether some differ in what they demand.
func compareShapes(t *testing.T, c *cycle, field string, jobs []*cluster.Job) (differ bool) {
	part, _ := c.s.Partition("main")
	shapes, demands := make([]*jobShape, len(jobs)), make([]*place.Demand, len(jobs))
	for k, j := range jobs {
		shapes[k], demands[k] = c.shapeFor(part, j, nil), demandOf(c, part, j)
		for i := range k {
			if reflect.DeepEqual(demands[i], demands[k]) {
				continue
			}
			differ = true
			if shapes[i] == shapes[k] {
				t.Errorf("%s is not in the shape key: %+v and %+v are one shape, with demands\n%+v\n%+v",
					field, jobs[i].Spec.Layout, j.Spec.Layout, demands[i], demands[k])
			}
		}
	}
	return differ
}

// demandOf is what a job demands, whosever it is where nodes are for all.
func demandOf(c *cycle, part *cluster.Partition, j *cluster.Job) *place.Demand {
	spec := *j.Spec
	if spec.Sharing != cluster.ShareUser {
		spec.UID = 0
	}
	d := place.NewDemand(c.s, part, &spec, j.Avoid)
	d.Switches = c.switchesWanted(j)
	limitNodes(d, nodeLimit(c.meter, part, j))
	return d
}

// shapeTestbeds are clusters on which one or another field matters.
func shapeTestbeds(t *testing.T) map[string]*testbed {
	plain := newTestbed(t, 4)

	shared := newTestbed(t, 4)
	cfg := *shared.S.Config()
	cfg.DistBlock, cfg.SerialAtEnd, cfg.OneTaskPerCore, cfg.Gradient = true, true, true, true
	cfg.MaxTasksPerNode, cfg.TopoOptional = 3, true
	cfg.Partitions = slices.Clone(cfg.Partitions)
	cfg.Partitions[0].OverSubscribe = "YES:2"
	cfg.Blocks = []cluster.Block{{Name: "b1", Nodes: []cluster.NodeName{nodeName(0), nodeName(1)}}}
	shared.Apply(&cluster.Configure{Config: &cfg})

	lifted := of(schedtest.Ruled(t, 4, "", "", "", "", "", ""))
	cfg = *lifted.S.Config()
	cfg.Partitions = slices.Clone(cfg.Partitions)
	cfg.Partitions[0].MinNodes, cfg.Partitions[0].MaxNodes = 2, 3
	lifted.Apply(&cluster.Configure{Config: &cfg})
	qos := &cluster.QOS{Name: "lift", UsageFactor: 1, Flags: []string{"PartitionMinNodes"}}
	lifted.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{QOS: qos}}})

	limited := of(schedtest.Ruled(t, 4, "", "", "", "", "MaxTRES=node=3", ""))
	qos = &cluster.QOS{Name: "lift", UsageFactor: 1, Limits: schedtest.Limits(t, "MaxTRES=node=2")}
	limited.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{QOS: qos}}})
	return map[string]*testbed{"plain": plain, "shared": shared, "lifted": lifted, "limited": limited}
}

// shapeBases are specs of which one field at a time is changed: some matter only beside others.
func shapeBases() []*cluster.JobSpec {
	gpus := func(n int64) []cluster.GRES { return []cluster.GRES{{Name: "gpu", Count: n}} }
	layouts := []*cluster.Layout{
		{},
		{MinNodes: 2, MaxNodes: 4, TasksPerNode: 2},
		{Tasks: 8, PerTask: gpus(1), Mem: cluster.Mem{Per: cluster.MemPerGPU, MB: 100}},
		{PerNode: gpus(2), CPUsPerTask: 2},
		{PerJob: gpus(3), PerSocket: gpus(1)},
	}
	var out []*cluster.JobSpec
	for _, l := range layouts {
		for _, sharing := range []cluster.Sharing{cluster.ShareDefault, cluster.ShareUser} {
			out = append(out, &cluster.JobSpec{
				Layout: l, Name: "j", UID: 1, User: "u", Sharing: sharing, Partitions: []string{"main"},
			})
		}
	}
	return out
}

// variants are, by field, jobs of a spec in which that field alone has one of some values, with that of the spec
// itself.
func variants(base *cluster.JobSpec) map[string][]*cluster.Job {
	out := map[string][]*cluster.Job{}
	job := func(field string, spec *cluster.JobSpec, avoid ...cluster.Avoided) {
		out[field] = append(out[field], &cluster.Job{
			ID: 1, Spec: spec, Limit: time.Hour, Eligible: epoch, Avoid: avoid,
		})
	}
	for _, i := range exportedFields(reflect.TypeFor[cluster.JobSpec]()) {
		if i.Type == reflect.TypeFor[*cluster.Layout]() {
			continue
		}
		job(i.Name, base)
		for _, v := range valuesOf(i.Type) {
			spec := *base
			reflect.ValueOf(&spec).Elem().FieldByIndex(i.Index).Set(v)
			job(i.Name, &spec)
		}
	}
	for _, i := range exportedFields(reflect.TypeFor[cluster.Layout]()) {
		job(i.Name, base)
		for _, v := range valuesOf(i.Type) {
			spec, layout := *base, *base.Layout
			reflect.ValueOf(&layout).Elem().FieldByIndex(i.Index).Set(v)
			spec.Layout = &layout
			job(i.Name, &spec)
		}
	}
	job("Job.Avoid", base)
	job("Job.Avoid", base, cluster.Avoided{Node: nodeName(1)})
	job("Job.Avoid", base, cluster.Avoided{Node: nodeName(2)})
	return out
}

func exportedFields(t reflect.Type) (out []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			out = append(out, f)
		}
	}
	return out
}

// wordValues are texts of which each means something in some field.
var wordValues = []string{"a100", "h100", "[a100*1&h100*1]", "disable-binding", "enforce-binding", "block",
	"cyclic:block", "block:cyclic", "plane=2",
	"nomultithread", "compute_bound", "memory_bound", "normal", "lift", string(nodeName(1)), string(nodeName(2))}

// valuesOf are non-zero values of a type.
func valuesOf(t reflect.Type) (out []reflect.Value) {
	add := func(v any) { out = append(out, reflect.ValueOf(v).Convert(t)) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		add(epoch)
		return out
	case t == reflect.TypeFor[cluster.GRES]():
		for _, g := range []cluster.GRES{
			{Name: "gpu", Count: 1}, {Name: "gpu", Count: 2}, {Name: "gpu", Type: "a100", Count: 1},
			{Name: "shard", Count: 1},
		} {
			add(g)
		}
		return out
	}
	switch t.Kind() {
	case reflect.Bool:
		add(true)
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		for n := range 4 {
			add(n + 1)
		}
	case reflect.String:
		for _, w := range wordValues {
			add(w)
		}
	case reflect.Pointer:
		for _, v := range valuesOf(t.Elem()) {
			p := reflect.New(t.Elem())
			p.Elem().Set(v)
			out = append(out, p)
		}
	case reflect.Slice:
		for _, v := range valuesOf(t.Elem()) {
			out = append(out, reflect.Append(reflect.Zero(t), v))
		}
	case reflect.Struct:
		for _, f := range exportedFields(t) {
			for _, v := range valuesOf(f.Type) {
				s := reflect.New(t).Elem()
				s.FieldByIndex(f.Index).Set(v)
				out = append(out, s)
			}
		}
	default:
		panic("no values for " + t.String())
	}
	return out
}
