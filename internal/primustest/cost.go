package primustest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// What Cost grants to an input of no bytes, and the time for each of its bytes.
const (
	costBytes = 4 << 20
	costTime  = 2 * time.Second
	costEach  = 20 * time.Microsecond
)

// What Measured grants to an input of no bytes, and for each of its bytes.
const (
	measuredBytes = 64 << 20
	measuredEach  = 4 << 10
)

// Cost calls f, which reads an input of so many bytes, and fails a test if it allocates more than 4
// MiB and each bytes for each of them, or takes more than 2 s of the CPU and 20 µs for each of
// them. It counts what the whole process does, so nothing else may run beside it.
func Cost(t testing.TB, length, each int, f func()) {
	t.Helper()
	end := measure()
	f()
	got, took := end()
	check(t, length, got, uint64(costBytes+each*length), took)
}

// check keeps the costs of an input, and fails a test if they are too high.
func check(t testing.TB, length int, got, most uint64, took time.Duration) {
	t.Helper()
	keep(length, got, took)
	if got > most {
		t.Errorf("given %d bytes, %d bytes were allocated, want at most %d", length, got, most)
	}
	if most := costTime + time.Duration(length)*costEach; took > most {
		t.Errorf("given %d bytes, %v of the CPU were used, want at most %v", length, took, most)
	}
}

// measure returns a function that returns what the process has allocated and used of the CPU since.
func measure() func() (bytes uint64, took time.Duration) {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := cpuTime()
	return func() (uint64, time.Duration) {
		took := cpuTime() - begin
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, took
	}
}

// CostsVariable names a directory in which each process of a fuzz test keeps its worst costs.
const CostsVariable = "PRIMUS_FUZZ_COSTS"

// costUnit is what shorter inputs count as.
const costUnit = 1 << 10

// worst are the costs of the inputs of this process that cost most, per byte.
var worst struct {
	sync.Mutex
	bytes, nanoseconds float64
}

// keep keeps the costs of an input if they are the worst so far and somebody asks for them.
func keep(length int, bytes uint64, took time.Duration) {
	dir := os.Getenv(CostsVariable)
	if dir == "" {
		return
	}
	worst.Lock()
	defer worst.Unlock()
	n := float64(max(length, costUnit))
	b, ns := float64(bytes)/n, float64(took)/n
	if b <= worst.bytes && ns <= worst.nanoseconds {
		return
	}
	worst.bytes, worst.nanoseconds = max(b, worst.bytes), max(ns, worst.nanoseconds)
	_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), fmt.Appendf(nil, "%g %g", worst.bytes, worst.nanoseconds), 0o600)
}

// Measured is Cost for all that a fuzz test does with an input of so many bytes until the function
// that it returns is called. It grants 64 MiB and 4 KiB for each of them. Outside of make fuzz,
// where tests run beside each other, it does nothing.
//
//	defer primustest.Measured(t, len(b))()
func Measured(t testing.TB, length int) func() {
	if os.Getenv(CostsVariable) == "" {
		return func() {}
	}
	end := measure()
	return func() {
		t.Helper()
		got, took := end()
		check(t, length, got, uint64(measuredBytes+measuredEach*length), took)
	}
}
