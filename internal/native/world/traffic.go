package world

import (
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Traffic is what a rank has passed to the calls of a collective, and how long they took.
type Traffic struct {
	Op    string
	Calls int64
	Bytes int64 // of the operand that this rank sends, whatever the collective makes of it
	Time  time.Duration
}

// counted is a collective whose calls are counted.
type counted[A any] struct {
	bound               *opmanager.Bound[A]
	op                  string
	sent                func(A) *tensor.Tensor
	calls, bytes, nanos atomic.Int64
}

// count returns a collective of the manager. sent returns the operand that a call sends.
func count[A any](m *opmanager.Manager, op *opregistry.Op[A], sent func(A) *tensor.Tensor) *counted[A] {
	return &counted[A]{bound: opmanager.MustBind(m, op), op: string(op.Name()), sent: sent}
}

// Call calls the collective.
func (c *counted[A]) Call(a A) error {
	begin := time.Now()
	err := c.bound.Call(a)
	c.nanos.Add(int64(time.Since(begin)))
	c.calls.Add(1)
	t := c.sent(a)
	c.bytes.Add(int64(t.NumElements() * t.DType().Size()))
	return err
}

// traffic returns what was counted so far.
func (c *counted[A]) traffic() Traffic {
	return Traffic{c.op, c.calls.Load(), c.bytes.Load(), time.Duration(c.nanos.Load())}
}

// Traffic returns what was counted of each collective so far, nil for one rank.
func (w *World) Traffic() []Traffic {
	if w.Alone() {
		return nil
	}
	return []Traffic{w.ops.allReduce.traffic(), w.ops.reduceScatter.traffic(), w.ops.allGather.traffic(), w.ops.broadcast.traffic(), w.ops.allToAll.traffic()}
}
