package flagos_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// benchmarkCase makes a case and calls its impl on some workers. It reports the fastest call, too,
// which other load on the machine disturbs least. `primus benchmark` compares impls with each
// other.
func benchmarkCase(b *testing.B, workers int, build func(m *opbench.Maker) (opbench.Case, error)) {
	backend := cpu.New()
	m := opbench.NewMaker(backend, tensor.F32)
	c, err := build(m)
	if err != nil {
		b.Fatal(err)
	}
	reg, pool := opregistry.NewRegistry(), parallel.New(workers)
	if err := reg.Register(flagos.Source()); err != nil {
		b.Fatal(err)
	}
	snap := reg.Snapshot()
	op, _ := snap.Index(c.Op.Name())
	s := c.Side(opbench.Elapsed(), snap, &snap.Impls(op)[0], opregistry.NewExec(pool, 0))
	s.WarmUp(0) // a backward op reads what its forward op has saved
	s.Before = nil
	best := time.Duration(math.MaxInt64)
	b.SetBytes(int64(c.Bytes))
	b.ReportAllocs()
	for b.Loop() {
		took, err := s.Time(1)
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, took)
	}
	if c.FLOPs > 0 {
		b.ReportMetric(c.FLOPs*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		b.ReportMetric(c.FLOPs/float64(best.Nanoseconds()), "best-GFLOP/s")
	}
	pool.Close()
	if err := m.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOps measures the ops of a training step of 2048 tokens.
func BenchmarkOps(b *testing.B) {
	each := func(name string, build func(m *opbench.Maker) (opbench.Case, error)) {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) { benchmarkCase(b, workers, build) })
		}
	}
	for _, op := range opbench.Ops() {
		each(op, func(m *opbench.Maker) (opbench.Case, error) { return m.Op(op, 2048, 512) })
	}
	for _, s := range [][3]int{{64, 64, 64}, {512, 512, 512}, {2048, 192, 192}, {2048, 864, 288}, {2048, 1536, 512}, {2048, 512, 1376}, {2048, 4096, 512}, {1, 512, 512}} {
		for _, l := range opbench.Layouts() {
			each(fmt.Sprintf("generic_gemm/%s/%dx%dx%d", l, s[0], s[1], s[2]), func(m *opbench.Maker) (opbench.Case, error) { return m.GEMM(s[0], s[1], s[2], l) })
		}
	}
	for _, s := range [][5]int{{8, 256, 6, 2, 32}, {8, 256, 6, 6, 48}, {4, 512, 8, 8, 64}, {2, 1024, 8, 2, 64}} {
		pair := func(m *opbench.Maker) (fwd, bwd opbench.Case, err error) {
			return m.Attention(s[0], s[1], s[2], s[3], s[4], attention.CausalMask, nil)
		}
		each(fmt.Sprintf("fused_attn_fwd/%v", s), func(m *opbench.Maker) (opbench.Case, error) { c, _, err := pair(m); return c, err })
		each(fmt.Sprintf("fused_attn_bwd/%v", s), func(m *opbench.Maker) (opbench.Case, error) { _, c, err := pair(m); return c, err })
	}
}

// BenchmarkGemmISA measures a product with each instruction set.
func BenchmarkGemmISA(b *testing.B) {
	kerneltest.EachFeature(b, func(b *testing.B) {
		benchmarkCase(b, 1, func(m *opbench.Maker) (opbench.Case, error) { return m.GEMM(512, 512, 512, opbench.Forward) })
	})
}
