package model

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// Trained returns the weights that are trained: the adapters if there are any, else all. The caller
// must not change the slice.
func (m *Model) Trained() []*Param {
	if m.cfg.Adapts() {
		return m.adapters
	}
	return m.params
}

// SplitTrained returns views of tensors that correspond to Trained, such as the moments of an
// optimizer, under their names in a checkpoint and in a fixed order.
func (m *Model) SplitTrained(beside []*tensor.Tensor) []Named {
	return ByName(m.Trained(), func(i int) *tensor.Tensor { return beside[i] })
}

// Adapters returns views of the adapters under their names in PEFT's files without the prefix
// base_model.model.
func (m *Model) Adapters() []Named {
	return ByName(m.adapters, func(i int) *tensor.Tensor { return m.adapters[i].Value })
}

// Merged returns the weights under the names of Tensors, with the products of their adapters added
// as MergedValues does.
func (m *Model) Merged(mgr *opmanager.Manager) (all []Named, release func() error, err error) {
	values, release, err := m.MergedValues(mgr)
	if err != nil {
		return nil, nil, err
	}
	return ByName(m.params, func(i int) *tensor.Tensor { return values[i] }), release, nil
}

// MergedValues returns the values of Params, those of weights with adapters as copies to which the
// products of these are added, and a function that returns their memory.
func (m *Model) MergedValues(mgr *opmanager.Manager) (all []*tensor.Tensor, release func() error, err error) {
	own := &memory.Arena{Backend: m.memory.Backend}
	product := opmanager.MustBind(mgr, gemm.GenericGemm)
	scale := opregistry.Float(float32(m.cfg.Scale()))
	values := map[*Param]*tensor.Tensor{}
	for _, l := range m.layers {
		if l.QKV.Weight.Value == nil { // of another stage
			continue
		}
		for _, w := range []LinearWeights{l.QKV, l.Out, l.Up, l.Down} {
			for _, a := range w.Adapters {
				into := values[w.Weight]
				if into == nil {
					if into = own.New(tensor.F32, w.Weight.Shape...); into == nil {
						return nil, nil, fmt.Errorf("merge the adapters: %w", own.Fail())
					}
					if err := into.CopyFrom(w.Weight.Value); err != nil {
						return nil, nil, errors.Join(fmt.Errorf("merge the adapters: %w", err), own.Close())
					}
					values[w.Weight] = into
				}
				args := gemm.GenericGemmArgs{A: a.A.Value, B: a.B.Value, Accumulate: true, Alpha: scale}
				if w.InOut {
					args = gemm.GenericGemmArgs{A: a.B.Value, TransA: true, B: a.A.Value, TransB: true, D: memory.Must(into.Slice(1, a.Lo, a.Hi)), Accumulate: true, Alpha: scale}
				} else {
					args.D = memory.Rows(into, a.Lo, a.Hi)
				}
				if err := product.Call(args); err != nil {
					return nil, nil, errors.Join(fmt.Errorf("merge the adapters: %w", err), own.Close())
				}
			}
		}
	}
	for _, p := range m.params {
		all = append(all, cmp.Or(values[p], p.Value))
	}
	return all, own.Close, nil
}
