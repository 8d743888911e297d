package library_test

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// encoder writes arguments as a program in C does. It keeps what they point to.
type encoder struct{ keep []any }

// encode returns primus_call.args of an argument struct.
func (e *encoder) encode(op opregistry.Handle, args any) ([]abi.Arg, error) {
	params, err := plugin.Layout(op)
	if err != nil {
		return nil, err
	}
	var all []abi.Arg
	for _, p := range params {
		all = append(all, e.argument(p.Sort, reflect.ValueOf(args).FieldByIndex(p.Path)))
	}
	return all, nil
}

func (e *encoder) argument(sort opregistry.Sort, v reflect.Value) abi.Arg {
	arg := abi.Arg{Sort: uint32(sort)}
	switch given := v.Interface().(type) {
	case *tensor.Tensor:
		if given == nil {
			return abi.Arg{}
		}
		d := given.DLPack()
		e.keep = append(e.keep, &d)
		arg.Value = uint64(uintptr(unsafe.Pointer(&d)))
	case []*tensor.Tensor:
		arg.Value = place(e, []abi.List{e.list(given)})
	case [][]*tensor.Tensor:
		var lists []abi.List
		for _, l := range given {
			lists = append(lists, e.list(l))
		}
		arg.Value = place(e, []abi.List{{Count: uint64(len(lists)), Items: uintptr(place(e, lists))}})
	case []int:
		arg.Value = e.numbers(given...)
	case interface{ Bounds() (int, int) }:
		arg.Value = e.numbers(given.Bounds())
	case opregistry.OptionalBool:
		on, set := given.Get()
		if !set {
			return abi.Arg{}
		}
		if on {
			arg.Value = 1
		}
	case opregistry.OptionalFloat:
		f, set := given.Get()
		if !set {
			return abi.Arg{}
		}
		arg.Value = math.Float64bits(float64(f))
	default:
		switch {
		case v.Kind() == reflect.Bool && v.Bool():
			arg.Value = 1
		case v.Kind() == reflect.Bool:
		case v.CanFloat():
			arg.Value = math.Float64bits(v.Float())
		case v.CanInt():
			arg.Value = uint64(v.Int())
		case v.CanUint():
			arg.Value = v.Uint()
		default:
			panic(fmt.Sprintf("an argument of type %v", v.Type()))
		}
	}
	return arg
}

func (e *encoder) list(tensors []*tensor.Tensor) abi.List {
	all := make([]tensor.DLTensor, len(tensors))
	for i, t := range tensors {
		if t != nil {
			all[i] = t.DLPack()
		}
	}
	return abi.List{Count: uint64(len(all)), Items: uintptr(place(e, all))}
}

func (e *encoder) numbers(n ...int) uint64 {
	all := make([]int64, len(n))
	for i, v := range n {
		all[i] = int64(v)
	}
	return place(e, []abi.List{{Count: uint64(len(n)), Items: uintptr(place(e, all))}})
}

// place keeps values and returns their address, which does not change on the heap.
func place[T any](e *encoder, s []T) uint64 {
	e.keep = append(e.keep, s)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s))))
}
