package optim

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// Average keeps an exponential moving average of weights. It belongs to one goroutine.
type Average struct {
	decay  float64
	values []*tensor.Tensor
	means  []*tensor.Tensor
	lists  [][]*tensor.Tensor // value, gradient, mean
	op     *opmanager.Bound[optim.MultiTensorSGDArgs]
	flag   *tensor.Tensor
	memory
}

// NewAverage returns the average of weights before the first update. 0 < decay < 1.
func NewAverage(decay float64, params []Param, m *opmanager.Manager, backend device.Backend) (_ *Average, err error) {
	a := &Average{decay: decay, op: opmanager.MustBind(m, optim.MultiTensorSGD), memory: memory{backend: backend}}
	if a.flag, err = a.new(tensor.I32, 1); err == nil {
		a.means, err = a.like(params)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.lists = make([][]*tensor.Tensor, 3)
	for i, p := range params {
		a.values = append(a.values, p.Value)
		for k, t := range []*tensor.Tensor{p.Value, p.Grad, a.means[i]} {
			a.lists[k] = append(a.lists[k], t)
		}
	}
	return a, nil
}

// Update takes the weights after an update, counted from 1:
//
//	mean = decay·mean + (1−decay)·weight, and the weight itself after the first update
//
// in f32. It is the momentum of a step of SGD with a learning rate of 0, whose gradient is the
// weight and whose weight, the gradient, does not change.
func (a *Average) Update(step int) error {
	err := a.op.Call(optim.MultiTensorSGDArgs{
		NoopFlag: a.flag, TensorLists: a.lists, Momentum: float32(a.decay), Dampening: float32(a.decay), FirstRun: step == 1, Scale: 1,
	})
	if err != nil {
		return fmt.Errorf("average of the weights: %w", err)
	}
	return nil
}

// Means returns the averages, in the order of the weights.
func (a *Average) Means() []*tensor.Tensor { return a.means }

// State returns the averages as a state without a name.
func (a *Average) State() []State { return []State{{Tensors: a.means}} }

// Swap exchanges the weights and their averages.
func (a *Average) Swap() error {
	for i, v := range a.values {
		if err := swap(v, a.means[i]); err != nil {
			return fmt.Errorf("average of the weights: %w", err)
		}
	}
	return nil
}

// swap exchanges the elements of two tensors of f32.
func swap(x, y *tensor.Tensor) error {
	if !x.OnHost() {
		old, err := x.ToHost()
		if err != nil {
			return err
		}
		return errors.Join(x.CopyFrom(y), y.CopyFrom(old))
	}
	a, b := tensor.Data[float32](x), tensor.Data[float32](y)
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
	return nil
}
