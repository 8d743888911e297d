package main

import (
	"bytes"
	"errors"
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// call is one call of a mutant made by a rule.
type call struct {
	opregistry.Call
	x   *opregistry.Exec
	run func(opregistry.Call) error // the right impl
}

// right runs the right impl on the operands of the call.
func (c call) right() error { return c.run(c.Call) }

// rule makes the same mistake in impls of many ops.
type rule struct {
	name  string
	dtype tensor.DType
	fits  func(opregistry.Handle) bool // nil for every op
	// wrong returns what a mutant does instead of right. It is called once for each mutant, so it can
	// keep state.
	wrong func(op opregistry.Handle) func(c call) error
}

// of returns the mutant of an op.
func (r rule) of(op opregistry.Handle) mutant {
	m := mutant{rule: r.name, dtype: r.dtype, oracle: right(op), changed: new(atomic.Int64), results: new(atomic.Int64)}
	run := right(op).Run
	wrong := r.wrong(op)
	m.impl = opregistry.Impl{Op: op, ID: "wrong", Kind: opregistry.KindReference, Run: opregistry.Untyped(op, func(x *opregistry.Exec, args any) error {
		a := opregistry.CallOf(op, args)
		return wrong(call{a, x, func(a opregistry.Call) error { return a.Run(run, x) }})
	})}
	return m
}

// written lists the operands that a call writes.
func (c call) written() []opregistry.Operand {
	var list []opregistry.Operand
	for _, o := range c.Operands() {
		if o.Access != opregistry.AccessRead {
			list = append(list, o)
		}
	}
	return list
}

// read lists the operands of numbers that a call only reads.
func (c call) read() []opregistry.Operand {
	var list []opregistry.Operand
	for _, o := range c.Operands() {
		if o.Access == opregistry.AccessRead && o.Tensor.DType().IsFloat() && o.Tensor.NumElements() > 0 {
			list = append(list, o)
		}
	}
	return list
}

// place says where an element of an operand is. Each element of a vector is a row and a column.
type place struct {
	rows, cols int // of the operand
	row, col   int
	index      int // of all elements
}

// places returns where elements of a shape are.
func places(shape tensor.Shape) func(index int) place {
	rows, cols := shape.Rows(), max(shape.Cols(), 1)
	if len(shape) == 1 {
		return func(i int) place { return place{cols, cols, i, i, i} }
	}
	return func(i int) place { return place{rows, cols, i / cols, i % cols, i} }
}

// afterwards runs the right impl and then changes the elements of its results: f receives where an
// element is, the old one and the right one.
func afterwards(f func(at place, old, v float64) float64) func(opregistry.Handle) func(call) error {
	return func(opregistry.Handle) func(call) error {
		return func(c call) error {
			written := c.written()
			old := make([][]float64, len(written))
			for i, o := range written {
				old[i] = o.Tensor.Float64s()
			}
			if err := c.right(); err != nil {
				return err
			}
			for i, o := range written {
				shape := o.Tensor.Shape()
				if len(shape) == 0 {
					continue
				}
				at, v := places(shape), o.Tensor.Float64s()
				for k := range v {
					v[k] = f(at(k), old[i][k], v[k])
				}
				if err := o.Tensor.SetFloat64s(v); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// beforehand runs the right impl on changed copies of what it reads, or updates; f receives the
// same as that of afterwards without the old element.
func beforehand(f func(at place, v float64) float64) func(opregistry.Handle) func(call) error {
	return func(opregistry.Handle) func(call) error {
		return func(c call) error {
			var undo []func() error
			for _, o := range c.Operands() {
				shape := o.Tensor.Shape()
				if o.Access == opregistry.AccessWrite || !o.Tensor.DType().IsFloat() || o.Tensor.NumElements() == 0 || len(shape) == 0 {
					continue
				}
				updated := o.Access != opregistry.AccessRead
				if !updated && overlaps(c.written(), o.Tensor) {
					continue
				}
				v := o.Tensor.Float64s()
				was := tensortest.Bytes(o.Tensor)
				at := places(shape)
				changed := make([]float64, len(v))
				for k := range v {
					changed[k] = f(at(k), v[k])
				}
				if err := o.Tensor.SetFloat64s(changed); err != nil {
					return err
				}
				if updated {
					continue
				}
				undo = append(undo, func() error { copy(memory(o.Tensor), was); return nil })
			}
			err := c.right()
			for _, u := range undo {
				err = errors.Join(err, u())
			}
			return err
		}
	}
}

func overlaps(list []opregistry.Operand, x *tensor.Tensor) bool {
	for _, o := range list {
		if tensor.Overlap(o.Tensor, x) {
			return true
		}
	}
	return false
}

// counted counts the calls whose results differ from the right ones.
func (m mutant) counted() mutant {
	run, op, wrong := m.oracle.Run, m.impl.Op, m.impl.Run
	m.impl.Run = opregistry.Untyped(op, func(x *opregistry.Exec, args any) error {
		a := opregistry.CallOf(op, args)
		var before, after [][]byte
		for _, o := range a.Operands() {
			before = append(before, tensortest.Bytes(o.Tensor))
			if o.Access != opregistry.AccessRead {
				m.results.Add(int64(o.Tensor.NumElements()))
			}
		}
		err := a.Run(wrong, x)
		for _, o := range a.Operands() {
			after = append(after, tensortest.Bytes(o.Tensor))
		}
		for i, o := range a.Operands() {
			copy(memory(o.Tensor), before[i])
		}
		if a.Run(run, opregistry.NewExec(nil, 0)) == nil {
			for i, o := range a.Operands() {
				if !bytes.Equal(after[i], memory(o.Tensor)) {
					m.changed.Add(1)
					break
				}
			}
		}
		for i, o := range a.Operands() {
			copy(memory(o.Tensor), after[i])
		}
		return err
	})
	return m
}
