package main

import (
	"reflect"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// argumentMutants returns mutants of an op that leave out one argument each: a number, a flag or an
// operand that may be left out.
func argumentMutants(op opregistry.Handle) []mutant {
	var list []mutant
	for _, p := range op.Params() {
		switch {
		case len(p.Path) == 0 || p.Sort == opregistry.SortNone || p.Sort == opregistry.SortLists || p.Sort == opregistry.SortTensors:
			continue
		case p.Sort == opregistry.SortTensor && (p.Given == "" || p.Access != "read"):
			continue
		}
		list = append(list, rule{name: p.Name + " is ignored", dtype: tensor.F32, wrong: func(opregistry.Handle) func(call) error {
			return func(c call) error {
				clone, args := c.Clone()
				v := args.FieldByIndex(p.Path)
				kept := reflect.ValueOf(v.Interface())
				for _, other := range []float64{0, 1, 2} {
					v.SetZero()
					if other != 0 && v.CanFloat() {
						v.SetFloat(other)
					} else if other != 0 && v.CanInt() {
						v.SetInt(int64(other))
					}
					if clone.Validate() == nil {
						return c.run(clone)
					}
				}
				v.Set(kept)
				return c.right()
			}
		}}.of(op))
	}
	return list
}
