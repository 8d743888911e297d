package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// optimImpls returns the impls of the family.
func optimImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(optim.MultiTensorAdam, multiTensorAdam),
		host.Impl(optim.MultiTensorL2Norm, multiTensorL2Norm),
		host.Impl(optim.MultiTensorScale, multiTensorScale),
		host.Impl(optim.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
		host.Impl(optim.MultiTensorAdamFP8, multiTensorAdamFP8),
		host.Impl(optim.MultiTensorAdamCapturable, multiTensorAdamCapturable),
		host.Impl(optim.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
		host.Impl(optim.MultiTensorSGD, multiTensorSGD),
		host.Impl(optim.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),
		host.Impl(optim.MultiTensorScaleTensor, multiTensorScaleTensor),
	}
}

// copyBlock is the number of elements that several passes go over while they are in the first-level
// cache.
const copyBlock = 2048

type adam struct {
	lists    [][]*tensor.Tensor
	step     layers.AdamStep
	unscales bool // gradients are multiplied by scale and stored
	scale    float32
}

var adamKernel = parallel.NewKernel((*adam).part)

// multiTensorAdam implements optim.MultiTensorAdam, in one pass over all lists.
func multiTensorAdam(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	var v host.Views
	requireLists(&v, a.TensorLists)
	if v.Err != nil {
		return v.Err
	}
	adamKernel.Run(e.Pool(), blocks(a.TensorLists[0]), adam{lists: a.TensorLists, step: adamStep(a)})
	return nil
}

// multiTensorAdamCapturable implements optim.MultiTensorAdamCapturable and, with a fifth
// list, optim.MultiTensorAdamCapturableMaster.
func multiTensorAdamCapturable(e *opregistry.Exec, a optim.MultiTensorAdamCapturableArgs) error {
	var v host.Views
	requireLists(&v, a.TensorLists)
	flag, step := v.Int32s("noop_flag", a.NoopFlag), v.Int32s("step", a.Step)
	rate, scale := v.Number("lr", a.LR), v.Number("inv_scale", a.InvScale)
	if v.Err != nil || flag[0] == 1 {
		return v.Err
	}
	plain := optim.MultiTensorAdamArgs{
		LR: rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon, Step: int(step[0]), Mode: a.Mode,
		BiasCorrection: a.BiasCorrection, WeightDecay: a.WeightDecay,
	}
	c := adam{lists: a.TensorLists, step: adamStep(plain), unscales: true, scale: scale}
	adamKernel.Run(e.Pool(), blocks(a.TensorLists[0]), c)
	return nil
}

// adamStep computes the numbers of a step in f64 and rounds each once.
func adamStep(a optim.MultiTensorAdamArgs) layers.AdamStep {
	beta1, beta2, rate := float64(a.Beta1), float64(a.Beta2), float64(a.LR)
	c1, c2 := 1., 1.
	if a.BiasCorrection {
		c1 -= math.Pow(beta1, float64(a.Step))
		c2 -= math.Pow(beta2, float64(a.Step))
	}
	s := layers.AdamStep{
		Beta1: a.Beta1, Rest1: float32(1 - beta1),
		Beta2: a.Beta2, Rest2: float32(1 - beta2),
		RootScale: float32(1 / math.Sqrt(c2)),
		Epsilon:   a.Epsilon,
		Rate:      float32(rate / c1),
	}
	if a.Mode == optim.AdamL2 {
		s.L2 = a.WeightDecay
	} else {
		s.Decay = float32(rate * float64(a.WeightDecay))
	}
	return s
}

func (c *adam) part(part int) {
	at, lo, hi := locate(c.lists[0], part)
	for _, list := range c.lists {
		if list[at].DType() != tensor.F32 {
			c.tiles(at, lo, hi)
			return
		}
	}
	g, p := c.data(0, at), c.data(1, at)
	m, v := c.data(2, at), c.data(3, at)
	if len(c.lists) == 4 && !c.unscales {
		layers.Adam(p[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi], &c.step)
		return
	}
	weights := p
	if len(c.lists) == maxAdamLists {
		weights = c.data(4, at)
	}
	for ; lo < hi; lo += copyBlock {
		end := min(lo+copyBlock, hi)
		if c.unscales {
			vector.Scale(c.scale, g[lo:end], g[lo:end])
		}
		layers.Adam(weights[lo:end], m[lo:end], v[lo:end], g[lo:end], &c.step)
		if len(c.lists) == maxAdamLists {
			copy(p[lo:end], weights[lo:end])
		}
	}
}

func (c *adam) data(list, at int) []float32 { return tensor.Data[float32](c.lists[list][at]) }
