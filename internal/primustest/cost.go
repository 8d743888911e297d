package primustest

import (
	"runtime"
	"testing"
	"time"
)

// What Cost grants to an input of no bytes, and the time for each of its bytes.
const (
	costBytes = 4 << 20
	costTime  = 2 * time.Second
	costEach  = 20 * time.Microsecond
)

// Cost calls f, which reads an input of so many bytes, and fails a test if it allocates more than 4
// MiB and each bytes for each of them, or takes more than 2 s of the CPU and 20 µs for each of
// them. It counts what the whole process does, so nothing else may run beside it.
func Cost(t testing.TB, length, each int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := cpuTime()
	f()
	took := cpuTime() - begin
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(costBytes+each*length); got > most {
		t.Errorf("given %d bytes, %d bytes were allocated, want at most %d", length, got, most)
	}
	if most := costTime + time.Duration(length)*costEach; took > most {
		t.Errorf("given %d bytes, %v of the CPU were used, want at most %v", length, took, most)
	}
}
