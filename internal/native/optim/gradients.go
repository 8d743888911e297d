package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// Gradients are the gradients of all weights. They belong to one goroutine.
type Gradients struct {
	clip  float64
	by    float64 // the gradients are so many times the true ones
	lists [1][]*tensor.Tensor
	norm  *opmanager.Bound[optim.MultiTensorL2NormArgs]
	scale *opmanager.Bound[optim.MultiTensorScaleArgs]
	flag  *tensor.Tensor
	total *tensor.Tensor
	count [1][]*tensor.Tensor         // those in the norm
	add   func(square *float64) error // nil for gradients that are all here
	memory
}

// NewGradients returns the gradients with the largest norm that clip allows; 0 allows any.
func NewGradients(clip float64, grads []*tensor.Tensor, m *opmanager.Manager, backend device.Backend) (*Gradients, error) {
	g := &Gradients{
		clip: clip, by: 1, lists: [1][]*tensor.Tensor{grads}, count: [1][]*tensor.Tensor{grads}, memory: memory{backend: backend},
		norm: opmanager.MustBind(m, optim.MultiTensorL2Norm), scale: opmanager.MustBind(m, optim.MultiTensorScale),
	}
	var err error
	if g.flag, err = g.new(tensor.I32, 1); err != nil {
		return nil, err
	}
	if g.total, err = g.new(tensor.F32, 1); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Spread says that these are a part of the gradients of several ranks, of which this one counts
// some for the norm of all. add replaces the square of their norm by the sum over all ranks.
func (g *Gradients) Spread(counted []*tensor.Tensor, add func(square *float64) error) {
	g.count[0], g.add = counted, add
}

// Scaled says that the gradients are a number of times the true ones, until Clip.
func (g *Gradients) Scaled(by float64) { g.by = by }

// Norm returns the Euclidean norm of all true gradients.
func (g *Gradients) Norm() (float64, error) {
	if err := clearNorm(g.flag, g.total); err != nil {
		return 0, fmt.Errorf("gradient norm: %w", err)
	}
	if len(g.count[0]) > 0 {
		if err := g.norm.Call(optim.MultiTensorL2NormArgs{NoopFlag: g.flag, TensorLists: g.count[:], Norm: g.total}); err != nil {
			return 0, fmt.Errorf("gradient norm: %w", err)
		}
	}
	total, err := tensor.Read[float32](g.total)
	if err != nil {
		return 0, fmt.Errorf("gradient norm: %w", err)
	}
	norm := float64(total[0]) / g.by
	if g.add == nil {
		return norm, nil
	}
	square := norm * norm
	if err := g.add(&square); err != nil {
		return 0, fmt.Errorf("gradient norm: %w", err)
	}
	return math.Sqrt(square), nil
}

// clearNorm sets the flag and the sum of an op for norms to 0.
func clearNorm(flag, total *tensor.Tensor) error {
	return errors.Join(
		tensor.Fill(flag, func(v []int32) { v[0] = 0 }),
		tensor.Fill(total, func(v []float32) { v[0] = 0 }),
	)
}

// Clip makes the gradients the true ones and returns their Euclidean norm. If that exceeds
// clip_grad, it scales them down to it. It does not change them if the norm is not finite.
func (g *Gradients) Clip() (norm float64, err error) {
	if norm, err = g.Norm(); err != nil {
		return 0, err
	}
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, nil
	}
	scale := 1 / g.by
	if g.clip > 0 && norm > g.clip {
		scale *= g.clip / (norm + 1e-6)
	}
	if scale == 1 {
		return norm, nil
	}
	args := optim.MultiTensorScaleArgs{
		NoopFlag: g.flag, TensorLists: [][]*tensor.Tensor{g.lists[0], g.lists[0]}, Scale: float32(scale),
	}
	if err := g.scale.Call(args); err != nil {
		return 0, fmt.Errorf("clip gradients: %w", err)
	}
	return norm, nil
}
