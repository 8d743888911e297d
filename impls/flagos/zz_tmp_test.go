package flagos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

func cpuNow() time.Duration {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// minTimes gives the best thread CPU time with one worker and the best wall time with two.
func minTimes(f func(e *opregistry.Exec)) (cpu, wall time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := opregistry.NewExec(nil, 0)
	cpu, wall = time.Hour, time.Hour
	start := time.Now()
	for i := 0; i < 5 || time.Since(start) < 200*time.Millisecond; i++ {
		t0 := cpuNow()
		f(e)
		cpu = min(cpu, cpuNow()-t0)
	}
	pool := parallel.New(2)
	defer pool.Close()
	e = opregistry.NewExec(pool, 0)
	start = time.Now()
	for i := 0; i < 5 || time.Since(start) < 300*time.Millisecond; i++ {
		t0 := time.Now()
		f(e)
		wall = min(wall, time.Since(t0))
	}
	return
}

func TestZZMin(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	run := flagosRun(t, ops.GenericGemm)
	for _, s := range gemmShapes {
		a := gemmArgs(t, rand.New(rand.NewPCG(1, 1)), s.m, s.n, s.k, s.transA, s.transB)
		cpu, wall := minTimes(func(e *opregistry.Exec) { _ = run(e, a) })
		flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		fmt.Printf("%-6s %5d %5d %5d  1w cpu %8.1f µs %6.1f GF   2w wall %8.1f µs %6.1f GF\n", s.name, s.m, s.n, s.k, float64(cpu.Nanoseconds())/1e3, flop/float64(cpu.Nanoseconds()), float64(wall.Nanoseconds())/1e3, flop/float64(wall.Nanoseconds()))
	}
}
