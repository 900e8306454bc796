package acct

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"dev.muster/telemetry"
	"modernc.org/sqlite"
)

// Samples of hardware are packed; these functions and views make them readable for questions in SQL.

// hardwareViews are of nodes, GPUs and jobs.
func hardwareViews() []view {
	when := []viewColumn{{"at", "at", "from when"}, {"seconds", "span", "for how long"}}
	node := append([]viewColumn{{"node", "node", "node"}}, when...)
	gpu := viewColumn{"gpu", "g.value", "number of the GPU on its node"}
	job := append([]viewColumn{{"job", "job", "number of the job"}}, node...)
	values := func(own string, fields []telemetry.Field) (out []viewColumn) {
		for i, f := range fields {
			help := f.Help
			if f.Unit != "" {
				help += ", " + f.Unit
			}
			out = append(out, viewColumn{f.Name, fmt.Sprintf("muster_sample(data, %s, %d)", own, i), help})
		}
		return out
	}
	both := func(a, b []viewColumn) []viewColumn { return append(append([]viewColumn{}, a...), b...) }
	const each = ", json_each(muster_gpus(data)) AS g"
	return []view{
		{"node_samples", "hardware", "what nodes did, each minute of two days and each hour of two years",
			both(node, values("-1", telemetry.NodeFields))},
		{"gpu_samples", "hardware" + each, "what GPUs did meanwhile", both(append(node[:len(node):len(node)], gpu),
			values("g.value", telemetry.GPUFields))},
		{"job_samples", "job_hardware",
			"what jobs did on each of their nodes, each minute of two days, then less often",
			both(job, values("-1", telemetry.JobFields))},
		{"job_gpu_samples", "job_hardware" + each, "what the GPUs of jobs did meanwhile",
			both(append(job[:len(job):len(job)], gpu), values("g.value", telemetry.GPUFields))},
	}
}

// sampleFunctions makes known: muster_sample(data, GPU or -1, field), and muster_gpus(data), the numbers
// of the GPUs as JSON.
func sampleFunctions() error {
	unpack := func(v driver.Value) *telemetry.Sample {
		data, _ := v.([]byte)
		s, err := telemetry.Unpack(data)
		if err != nil {
			return nil
		}
		return s
	}
	return errors.Join(
		sqlite.RegisterDeterministicScalarFunction("muster_sample", 3,
			func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				s := unpack(args[0])
				part, ok1 := args[1].(int64)
				field, ok2 := args[2].(int64)
				if s == nil || !ok1 || !ok2 {
					return nil, nil
				}
				values := s.Own
				if part >= 0 {
					values = s.GPU(int(part)).Values
				}
				if field < 0 || int(field) >= len(values) || values[field] < 0 {
					return nil, nil
				}
				return values[field], nil
			}),
		sqlite.RegisterDeterministicScalarFunction("muster_gpus", 1,
			func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				var list []string
				if s := unpack(args[0]); s != nil {
					for i := range s.GPUs {
						list = append(list, fmt.Sprint(s.GPUs[i].Index))
					}
				}
				return "[" + strings.Join(list, ",") + "]", nil
			}))
}
