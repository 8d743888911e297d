package flagos_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// attnShapes are causal attentions of training steps of 2048 tokens over views of a
// fused projection.
var attnShapes = []attention.AttnDims{
	{Batch: 8, SeqQ: 256, SeqKV: 256, Heads: 6, Groups: 2, DimQK: 32, DimV: 32},
	{Batch: 8, SeqQ: 256, SeqKV: 256, Heads: 6, Groups: 6, DimQK: 48, DimV: 48},
	{Batch: 4, SeqQ: 512, SeqKV: 512, Heads: 8, Groups: 8, DimQK: 64, DimV: 64},
	{Batch: 2, SeqQ: 1024, SeqKV: 1024, Heads: 8, Groups: 2, DimQK: 64, DimV: 64},
}

func BenchmarkAttention(b *testing.B) {
	fwd, bwd := flagosRun(b, attention.FusedAttnFwd), flagosRun(b, attention.FusedAttnBwd)
	for _, d := range attnShapes {
		for _, workers := range []int{1, 2} {
			// The visible half of two products forward and five backward.
			flop := 2 * float64(d.Batch*d.Heads*d.SeqQ*d.SeqKV*d.DimQK)
			for _, direction := range []struct {
				name string
				flop float64
				run  func(*opregistry.Exec, attention.FusedAttnBwdArgs) error
			}{
				{"fwd", flop, func(e *opregistry.Exec, a attention.FusedAttnBwdArgs) error { return fwd(e, a.Fwd()) }},
				{"bwd", 2.5 * flop, bwd},
			} {
				b.Run(fmt.Sprintf("%s/b=%d/s=%d/h=%d/g=%d/d=%d/workers=%d", direction.name, d.Batch, d.SeqQ, d.Heads, d.Groups, d.DimQK, workers), func(b *testing.B) {
					pool := parallel.New(workers)
					defer pool.Close()
					e := opregistry.NewExec(pool, 0)
					c := newAttnCase(b, rand.New(rand.NewPCG(1, 1)), d, attention.SBHD, attention.CausalMask, true)
					if err := fwd(e, c.bwd.Fwd()); err != nil {
						b.Fatal(err)
					}
					measure(b, direction.flop, func() error { return direction.run(e, c.bwd) })
				})
			}
		}
	}
}
