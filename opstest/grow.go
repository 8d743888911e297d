package opstest

import (
	"reflect"

	"github.com/primus-fl/primus/opregistry"
)

// growth says which lengths grow with one that grows from n to another.
type growth struct {
	odd bool // the new length may be odd
	of  func(m, n, to int) int
}

// growths returns what may grow: the length alone, with those of a fixed ratio to it, with the
// numbers of its blocks, with all its multiples, and while the others become 1.
func growths() []growth {
	list := []growth{{true, ratio(1)}, {true, ratio(2)}, {false, ratio(0.5)}, {false, ratio(1. / 3)}}
	for _, block := range []int{16, 32, 128} {
		list = append(list, growth{false, func(m, n, to int) int {
			switch blocks := (n + block - 1) / block; {
			case m == n:
				return to
			case m == blocks && blocks > 1:
				return (to + block - 1) / block
			}
			return m
		}})
	}
	multiples := func(m, n, to int) int {
		if m%n == 0 {
			return m / n * to
		}
		return m
	}
	alone := func(m, n, to int) int {
		if m == n {
			return to
		}
		return min(m, 1)
	}
	return append(list, growth{false, multiples}, growth{true, alone})
}

func ratio(f float64) func(m, n, to int) int {
	return func(m, n, to int) int {
		switch {
		case m == n:
			return to
		case float64(m) == f*float64(n):
			return int(f * float64(to))
		}
		return m
	}
}

// lengthsOf returns the lengths that the axes of the operands of a call would have.
func lengthsOf(call *staged, longer func(int) int) []int {
	var all []int
	for _, o := range call.operands {
		for _, n := range o.Tensor.Shape() {
			all = append(all, longer(n))
		}
	}
	return all
}

// resized returns a call whose whole numbers, which may be lengths of axes, are others; changed
// reports whether one is.
func resized(a opregistry.Call, size func(int) int) (other opregistry.Call, changed bool) {
	clone, args := a.Clone()
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch {
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case v.Kind() == reflect.Slice && v.Len() > 0 && (v.Type().Elem().Kind() == reflect.Int || v.Type().Elem().Kind() == reflect.Struct):
			list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(list, v)
			v.Set(list)
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case v.Type() == reflect.TypeFor[int]():
			if n := size(int(v.Int())); n != int(v.Int()) {
				v.SetInt(int64(n))
				changed = true
			}
		}
	}
	walk(args)
	return clone, changed
}
