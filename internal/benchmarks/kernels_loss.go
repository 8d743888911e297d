package main

import (
	"fmt"

	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
)

// losses are steps of an output layer forward and backward, by the op that keeps no logits and by
// the five calls that do.
func (b *bench) losses() []contest {
	var all []contest
	for _, classes := range []int{4096, 32768, 151936} {
		all = append(all, contest{
			group: "loss", name: fmt.Sprintf("linear_cross_entropy/%d", classes), unit: "GFLOP/s", once: classes > 1<<16,
			prepare: func(m *opbench.Maker) (match, error) {
				a := m.LinearEntropy(tokens, hidden, classes)
				fused, err := opbench.NewCase(m, loss.LinearCrossEntropyFwd, "", a)
				if err != nil {
					return match{}, err
				}
				apart, err := b.unfused(m, a)
				work := 3 * 2 * 1e-9 * tokens * hidden * float64(classes)
				return match{ours: b.side(fused, flagosID), oursWork: work, peer: apart, peerWork: work, peerName: "five calls"}, err
			},
		})
	}
	return all
}

// unfused makes the calls that linear_cross_entropy_fwd with gradients stands for.
func (b *bench) unfused(m *opbench.Maker, a loss.LinearCrossEntropyFwdArgs) (*opbench.Side, error) {
	logits, saved := m.Fresh(a.Hidden.DType(), tokens, a.Weight.Shape()[0]), &opregistry.Saved{}
	multiply := func(a gemm.GenericGemmArgs) (opbench.Case, error) { return opbench.NewCase(m, gemm.GenericGemm, "", a) }
	var calls []*opbench.Side
	for _, build := range []func() (opbench.Case, error){
		func() (opbench.Case, error) {
			return multiply(gemm.GenericGemmArgs{A: a.Weight, TransA: true, B: a.Hidden, D: logits})
		},
		func() (opbench.Case, error) {
			return opbench.NewCase(m, loss.CrossEntropyFwd, "", loss.CrossEntropyFwdArgs{
				Logits: logits, Targets: a.Targets, Losses: a.Losses, LSE: a.LSE, IgnoreIndex: a.IgnoreIndex, Saved: saved,
			})
		},
		func() (opbench.Case, error) {
			return opbench.NewCase(m, loss.CrossEntropyBwd, "", loss.CrossEntropyBwdArgs{
				Logits: logits, Targets: a.Targets, LSE: a.LSE, DLosses: a.DLosses, DLogits: logits, IgnoreIndex: a.IgnoreIndex, Saved: saved,
			})
		},
		func() (opbench.Case, error) {
			return multiply(gemm.GenericGemmArgs{A: a.Weight, B: logits, D: a.DHidden, Grad: true})
		},
		func() (opbench.Case, error) {
			return multiply(gemm.GenericGemmArgs{A: a.Hidden, B: logits, TransB: true, D: a.DWeight, Grad: true})
		},
	} {
		c, err := build()
		if err != nil {
			return nil, err
		}
		calls = append(calls, b.side(c, flagosID))
	}
	return opbench.NewSide(b.now, func() error {
		for _, c := range calls {
			if _, err := c.Time(1); err != nil {
				return err
			}
		}
		return nil
	}), nil
}
