package main

import (
	"bytes"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// argumentMutants returns mutants of an op that leave out one argument each: a number, a flag or an
// operand that may be left out, which is read as zeros where it must be given.
func argumentMutants(op opregistry.Handle) []mutant {
	var list []mutant
	for _, p := range op.Params() {
		switch {
		case len(p.Path) == 0 || p.Sort == opregistry.SortNone || p.Sort == opregistry.SortLists || p.Sort == opregistry.SortTensors:
			continue
		case p.Sort == opregistry.SortTensor && (p.Given == "" || p.Access != "read"):
			continue
		}
		free := new(atomic.Int64)
		m := rule{name: p.Name + " is ignored", dtype: tensor.F32, wrong: func(opregistry.Handle) func(call) error {
			return func(c call) error {
				clone, args := c.Clone()
				v := args.FieldByIndex(p.Path)
				given := reflect.ValueOf(v.Interface())
				others := valid(clone, v)
				if !slices.ContainsFunc(c.written(), func(o opregistry.Operand) bool { return o.Tensor.NumElements() > 0 }) {
					return c.right()
				}
				if p.Sort == opregistry.SortTensor && v.IsNil() && givable(clone, v) {
					free.Add(1)
				}
				for _, other := range others {
					if !equal(other, given) && c.serves(clone, v, other) {
						free.Add(1)
						break
					}
				}
				if len(others) > 0 {
					v.Set(others[0])
					return c.run(clone)
				}
				if x, ok := v.Interface().(*tensor.Tensor); ok && x != nil && x.NumElements() > 0 {
					free.Add(1)
					zeros, err := zeros(x)
					if err != nil {
						return err
					}
					v.Set(reflect.ValueOf(zeros))
					return c.run(clone)
				}
				return c.right()
			}
		}}.of(op)
		m.free = free
		list = append(list, m)
	}
	return list
}

// equal reports whether two values of an argument are the same: an empty list is none.
func equal(one, other reflect.Value) bool {
	if one.Kind() == reflect.Slice && one.Len() == 0 && other.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(one.Interface(), other.Interface())
}

// zeros returns a tensor of the shape of another one.
func zeros(x *tensor.Tensor) (*tensor.Tensor, error) {
	return tensor.FromBytes(make([]byte, x.NumElements()*x.DType().Size()), x.DType(), x.Shape()...)
}

// valid returns those of a few values of an argument with which a call is valid: the first of them
// is what an impl has that ignores the argument. Where no small integer is valid, they are those
// beside the given one.
func valid(c opregistry.Call, v reflect.Value) []reflect.Value {
	given := reflect.ValueOf(v.Interface())
	defer v.Set(given)
	var found []reflect.Value
	for _, n := range []int{0, 1, 2} {
		v.SetZero()
		switch {
		case n == 0:
		case v.CanFloat():
			v.SetFloat(float64(n))
		case v.CanInt():
			v.SetInt(int64(n))
		case v.CanUint():
			v.SetUint(uint64(n))
		case v.Kind() == reflect.Bool && n == 1:
			v.SetBool(true)
		default:
			continue
		}
		if c.Validate() == nil {
			found = append(found, reflect.ValueOf(v.Interface()))
		}
	}
	for _, n := range []int64{1, -1} {
		if len(found) > 0 || !v.CanInt() {
			break
		}
		if v.SetInt(given.Int() + n); c.Validate() == nil {
			found = append(found, reflect.ValueOf(v.Interface()))
		}
	}
	return found
}

// serves reports whether the right impl serves a call with another value of an argument. What it
// writes is undone.
func (c call) serves(clone opregistry.Call, v, other reflect.Value) bool {
	given := reflect.ValueOf(v.Interface())
	defer v.Set(given)
	v.Set(other)
	written := c.written()
	var before [][]byte
	for _, o := range written {
		before = append(before, bytes.Clone(memory(o.Tensor)))
	}
	err := c.run(clone)
	for i, o := range written {
		copy(memory(o.Tensor), before[i])
	}
	return err == nil
}

// givable reports whether a call is valid with an operand that it has left out: with one of the
// other operands in its place, or with a tensor of one or two of their axes.
func givable(c opregistry.Call, v reflect.Value) bool {
	defer v.SetZero()
	lengths := map[int]bool{1: true}
	for _, o := range c.Operands() {
		for _, n := range o.Tensor.Shape() {
			lengths[n] = true
		}
		if v.Set(reflect.ValueOf(o.Tensor)); c.Validate() == nil {
			return true
		}
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.I32, tensor.I64, tensor.U8, tensor.Bool, tensor.BF16} {
		for n := range lengths {
			for m := range lengths {
				for _, shape := range [][]int{{n}, {n, m}} {
					if tensor.Shape(shape).NumElements() > 1<<20 {
						continue
					}
					x, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
					if err != nil {
						continue
					}
					if v.Set(reflect.ValueOf(x)); c.Validate() == nil {
						return true
					}
				}
			}
		}
	}
	return false
}
