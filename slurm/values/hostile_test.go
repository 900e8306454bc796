package values

import (
	"strings"
	"testing"
	"time"
)

// TestHostileValues reads values that are made to take long: each is read or refused at once.
func TestHostileValues(t *testing.T) {
	const many = 1 << 20
	for name, read := range map[string]func(){
		"dependencies":  func() { ParseDepends("afterok" + strings.Repeat(":1", many)) },
		"either":        func() { ParseDepends(strings.Repeat("1?", many)) },
		"array":         func() { ParseArray("0-4000000" + strings.Repeat(",0-4000000", many)) },
		"tasks":         func() { ParseArray("1" + strings.Repeat(",1", many)) },
		"mail":          func() { ParseMailTypes(strings.Repeat("END,", many)) },
		"GPUs":          func() { ParseGPUs("h100:1" + strings.Repeat(",h100:1", many)) },
		"GRES":          func() { ParseGRES("gpu:1" + strings.Repeat(",gpu:h100:1", many)) },
		"memory":        func() { ParseMem(strings.Repeat("9", many)) },
		"nodes":         func() { _, _, _ = ParseNodes(strings.Repeat("1,", many)) },
		"distribution":  func() { _, _ = ParseDistribution(strings.Repeat("block:", many)) },
		"time limit":    func() { ParseTimeLimit(strings.Repeat("1:", many)) },
		"moment":        func() { ParseWhen(strings.Repeat("now+", many), time.Now()) },
		"dashed moment": func() { ParseWhen("2026"+strings.Repeat("-01", many), time.Now()) },
		"signal":        func() { ParseSignal(strings.Repeat("B:", many)) },
		"switches":      func() { _, _, _ = ParseSwitches(strings.Repeat("1@", many)) },
		"frequency":     func() { ParseFreq(strings.Repeat("low-", many)) },
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if read(); time.Since(began) > 5*time.Second {
				t.Errorf("it took %v", time.Since(began))
			}
		})
	}
}
