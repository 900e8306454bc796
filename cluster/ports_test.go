package cluster

import "testing"

// TestPortRange: what MpiParams says of ports, and what is wrong.
func TestPortRange(t *testing.T) {
	for text, want := range map[string]struct {
		r  PortRange
		ok bool
	}{
		"ports=12000-12999":         {PortRange{12000, 12999}, true},
		"Ports=12000-12000":         {PortRange{12000, 12000}, true},
		"other,ports=12000-12003":   {PortRange{12000, 12003}, false},
		"ports=12000-12003, other":  {PortRange{12000, 12003}, false},
		"ports=12000":               {},
		"ports=13000-12000":         {},
		"ports=0-5":                 {},
		"ports=60000-70000":         {},
		"ports=x-y":                 {},
		"12000-12999":               {},
		"ports=1-99999999999999999": {},
	} {
		if r, ok := ParsePortRange(text); r != want.r || ok != want.ok {
			t.Errorf("%q is %v, %v, want %v", text, r, ok, want)
		}
	}
	cfg := Config{}
	if n := cfg.StepPorts().Len(); n != 0 {
		t.Errorf("%d ports where none are named", n)
	}
	cfg.Keys = map[string]string{"mpiparams": "ports=12000-12009"}
	if n := cfg.StepPorts().Len(); n != 10 {
		t.Errorf("%d ports, want 10", n)
	}
}
