package api

import (
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestTexts: what users write is bounded and has no byte in it that ends texts elsewhere.
func TestTexts(t *testing.T) {
	long := strings.Repeat("a", 200_000)
	spec := func(change func(*cluster.JobSpec)) SubmitRequest {
		s := cluster.JobSpec{Layout: &cluster.Layout{}, Name: "job", WorkDir: "/home/a", Args: []string{"x\ny"}}
		change(&s)
		return SubmitRequest{Spec: s}
	}
	for name, c := range map[string]struct {
		request any
		want    string // in the error; "": there is none
	}{
		"as most": {spec(func(*cluster.JobSpec) {}), ""},
		"a long account": {
			spec(func(s *cluster.JobSpec) { s.Account = long }),
			"spec.account has 200000 bytes, more than 1024",
		},
		"a long path": {
			spec(func(s *cluster.JobSpec) { s.WorkDir = long[:4097] }),
			"spec.work_dir has 4097 bytes, more than 4096",
		},
		"a path":           {spec(func(s *cluster.JobSpec) { s.WorkDir = long[:4096] }), ""},
		"NUL in a name":    {spec(func(s *cluster.JobSpec) { s.Name = "a\x00b" }), "spec.name has a NUL byte"},
		"a line end in it": {spec(func(s *cluster.JobSpec) { s.Name = "a\nb" }), "spec.name has a line end"},
		"one in a comment": {spec(func(s *cluster.JobSpec) { s.Comment = "a\nb" }), ""},
		"in a list": {
			spec(func(s *cluster.JobSpec) { s.Partitions = []string{"a", "b\r"} }),
			"spec.partitions has a line end",
		},
		"through a pointer": {
			spec(func(s *cluster.JobSpec) { s.Constraint = long }), "spec.constraint has 200000 bytes",
		},
		"of an update": {
			cluster.UpdateJob{Patch: cluster.Patch{MailUser: &long}}, "patch.mail_user has 200000 bytes",
		},
		"a list of variants": {spec(func(s *cluster.JobSpec) { s.CPUBind = "mask_cpu:" + long[:20000] }), ""},
		"of operators alone": {cluster.Configure{Config: &cluster.Config{ClusterIdentity: cluster.ClusterIdentity{ClusterName: long}}}, ""},
	} {
		err := checkTexts(c.request)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestTextTags: each tag is a number of bytes, with or without "lines".
func TestTextTags(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[SubmitRequest](), reflect.TypeFor[StepRequest](),
		reflect.TypeFor[cluster.UpdateJob](), reflect.TypeFor[cluster.NodeSet](),
		reflect.TypeFor[SQLRequest](),
	} {
		walkTags(t, typ)
	}
}

func walkTags(t *testing.T, typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walkTags(t, typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag := f.Tag.Get("text")
			if r := ruleOf(tag); r != nil && tag != "-" && (r.max <= 0 || strings.TrimSuffix(tag, ",lines") == tag && strings.Contains(tag, ",")) {
				t.Errorf("%s.%s: text:%q", typ, f.Name, tag)
			}
			if f.IsExported() {
				walkTags(t, f.Type)
			}
		}
	}
}

func BenchmarkTexts(b *testing.B) {
	q := SubmitRequest{
		Spec: cluster.JobSpec{
			Layout: &cluster.Layout{Constraint: "h100"}, Name: "job", WorkDir: "/home/alice/work",
			Account: "a", SubmitLine: "sbatch job.sh",
		},
	}
	for b.Loop() {
		if err := checkTexts(q); err != nil {
			b.Fatal(err)
		}
	}
}
