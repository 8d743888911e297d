package python

import (
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// Lines come from programs of others: whatever they are, reading one returns.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		" iteration 3/ 50 | elapsed time per iteration (ms): 812.3/800.1 | lm loss: 1.0E+01 | hip mem usage/free: 12.5GB/1GB |",
		"completed step: 3, seconds: 1.5, TFLOP/s/device: 210.1, Tokens/s/device: 5461.2, total_weights: 65536, loss: 9.812",
		"[2026-01-31 12:00:00,000 TE-FL manager.py:133 INFO] Op 'gemm' using 'vendor.cuda' (kind=vendor, vendor=CUDA)",
		"[TE-FL manager.py:133 WARNING] Implementation 'a' failed for op 'gemm': x", "[TE-FL m:1 INFO] Op 'gemm' fallback to '.' (kind=)",
		"\x1b[31mstep", "iteration 99999999999999999999/1 | loss: nan |", "[TE-FL m:1 INFO] OpManager initialized: 99999999999999999999 ops with 1 implementations",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		defer primustest.Measured(t, len(line))()
		var l opLog
		for rank := range 2 {
			for _, e := range l.events(rank, line) {
				if e == nil {
					t.Fatal("an event is nil")
				}
			}
		}
		for _, read := range []func(string) (Step, bool){MegatronStep, CompletedStep} {
			if s, ok := read(line); ok && s.Step < 0 {
				t.Fatalf("step %d", s.Step)
			}
		}
	})
}
