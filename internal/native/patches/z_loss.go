package patches

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/tensor"
)

const zLossCoeff = "z_loss_coeff"

func zLoss() patch.Patch {
	return patch.Patch{
		ID:          "native.z_loss",
		Description: "Add z-loss, which keeps the logits from drifting",
		Backend:     native.Framework, Phase: patch.Setup, Style: patch.Wrapping,
		Symbols: []string{native.LossPoint.Name()}, Keys: []string{zLossCoeff}, Condition: patch.Condition{
			Text: zLossCoeff + " > 0",
			Holds: func(c *patch.Context) (bool, error) {
				coeff, err := patch.Param(c, zLossCoeff, 0.0)
				if err == nil && (!(coeff >= 0) || math.IsInf(coeff, 0)) {
					err = fmt.Errorf("%s: given %v, want a number >= 0", zLossCoeff, coeff)
				}
				return coeff > 0, err
			},
		},
		Apply: func(c *patch.Context) error {
			coeff, err := patch.Param(c, zLossCoeff, 0.0)
			if err != nil {
				return err
			}
			return patch.Wrap(c, native.LossPoint, func(next model.Loss) model.Loss { return withZLoss(next, coeff) })
		},
	}
}

// withZLoss adds to a cross entropy
//
//	c · weighted mean over tokens of z²,   z = log Σ exp(logits)
//
// The gradient that it adds to a row of logits is w·2cz·softmax, where w is the weight of the
// token. Cross entropy gives w·(softmax − onehot) for a row, so the row is computed with the weight
// w·(1+2cz) and w·2cz is added to it at the target. It reads LSE and DLosses and changes DLosses
// and one element per token of DLogits. f32 with f64 sums; a NaN or infinity in LSE makes the loss
// one. dlogits is rounded again where it has 16 bits. Deterministic; memory for one number per
// token is allocated once.
//
// Source: Chowdhery et al. 2022, "PaLM", arXiv:2204.02311, section 5.
func withZLoss(next model.Loss, coeff float64) model.Loss {
	var terms []float32 // w·2cz of each token
	return model.Loss{
		Forward: func(b *model.LossBatch) (float64, error) {
			loss, err := next.Forward(b)
			if err != nil {
				return 0, err
			}
			lse, err := tensor.Read[float32](b.LSE)
			if err != nil {
				return 0, err
			}
			return loss + coeff*b.Mean(func(i int) float64 { return float64(lse[i]) * float64(lse[i]) }), nil
		},
		Backward: func(b *model.LossBatch) error {
			lse, err := tensor.Read[float32](b.LSE)
			if err != nil {
				return err
			}
			terms = terms[:0]
			err = tensor.Edit(b.DLosses, func(weights []float32) {
				for i, z := range lse {
					terms = append(terms, float32(float64(weights[i])*2*coeff*float64(z)))
					weights[i] += terms[i]
				}
			})
			if err != nil {
				return err
			}
			if err := next.Backward(b); err != nil {
				return err
			}
			targets, err := tensor.Read[int32](b.Targets)
			if err != nil {
				return err
			}
			dLogits, err := b.DLogits.ToHost()
			if err != nil {
				return err
			}
			for i, term := range terms {
				target := int(targets[i])
				dLogits.Set(dLogits.At(i, target)+float64(term), i, target)
			}
			return b.DLogits.CopyFrom(dLogits)
		},
	}
}
