package world

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// ops are what a World calls.
type ops struct {
	allReduce     *counted[collective.AllReduceArgs]
	reduceScatter *counted[collective.ReduceScatterArgs]
	allGather     *counted[collective.AllGatherArgs]
	broadcast     *counted[collective.BroadcastArgs]
	allToAll      *counted[collective.AllToAllArgs]
	scale         *opmanager.Bound[optim.MultiTensorScaleArgs]

	traced bool // nothing is exchanged
}

func bind(m *opmanager.Manager) *ops {
	return &ops{
		allReduce:     count(m, collective.AllReduce, func(a collective.AllReduceArgs) *tensor.Tensor { return a.Input }),
		reduceScatter: count(m, collective.ReduceScatter, func(a collective.ReduceScatterArgs) *tensor.Tensor { return a.Input }),
		allGather:     count(m, collective.AllGather, func(a collective.AllGatherArgs) *tensor.Tensor { return a.Input }),
		broadcast:     count(m, collective.Broadcast, func(a collective.BroadcastArgs) *tensor.Tensor { return a.Buffer }),
		allToAll:      count(m, collective.AllToAll, func(a collective.AllToAllArgs) *tensor.Tensor { return a.Input }),
		scale:         opmanager.MustBind(m, optim.MultiTensorScale),
	}
}

// Trace runs a function in which this World and its parts call the ops of a Manager that traces, so
// that nothing is exchanged, and what other ranks would have sent is undefined.
func (w *World) Trace(m *opmanager.Manager, run func() error) error {
	if w.Alone() {
		return run()
	}
	own := *w.ops
	defer func() { *w.ops = own }()
	*w.ops = *bind(m)
	w.ops.traced = true
	return run()
}

// Traced reports whether Trace runs.
func (w *World) Traced() bool { return w.ops.traced }
