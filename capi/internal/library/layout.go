package library

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// layout says where the arguments of an op lie in its argument struct.
type layout struct {
	op     string
	fields []field
	saved  int // the offset of the record of the saved state, −1 without a family
}

// field is an argument.
type field struct {
	name   string
	index  int
	sort   opregistry.Sort
	offset uintptr
	set    func(at unsafe.Pointer, a *abi.Arg, o *operands) error
}

// newLayout returns the layout of an op with these arguments, in the order of primus_call.args.
func newLayout(op opregistry.Handle, params []opregistry.Param) (*layout, error) {
	l := &layout{op: op.Name(), saved: -1}
	for i := range op.Args().NumField() {
		if f := op.Args().Field(i); f.Type == reflect.TypeFor[*opregistry.Saved]() {
			l.saved = int(f.Offset)
		}
	}
	for _, p := range params {
		f := field{name: p.Name, index: p.Index, sort: p.Sort}
		t := op.Args()
		for _, i := range p.Path {
			f.offset += t.Field(i).Offset
			t = t.Field(i).Type
		}
		if f.set = setterOf(&p); f.set == nil {
			return nil, fmt.Errorf("op %q: argument %q of type %v has no setter", op.Name(), p.Name, p.Type)
		}
		l.fields = append(l.fields, f)
	}
	return l, nil
}

// read writes the arguments of a call into an argument struct.
func (l *layout) read(args unsafe.Pointer, given []abi.Arg, o *operands) error {
	for i := range given {
		a := &given[i]
		if a.Sort == abi.ArgAbsent {
			continue
		}
		if i >= len(l.fields) {
			return invalid("op %q: given an argument at index %d, want at most %d arguments", l.op, i, len(l.fields))
		}
		f := &l.fields[i]
		if opregistry.Sort(a.Sort) != f.sort {
			return invalid("op %q: argument %q (index %d): given sort %d, want %d (%v)", l.op, f.name, f.index, a.Sort, f.sort, f.sort)
		}
		if err := f.set(unsafe.Add(args, f.offset), a, o); err != nil {
			return invalid("op %q: argument %q (index %d): %w", l.op, f.name, f.index, err)
		}
	}
	return nil
}

// setterOf returns the function that writes an argument into its field, nil if there is none for
// its type.
func setterOf(p *opregistry.Param) func(at unsafe.Pointer, a *abi.Arg, o *operands) error {
	switch p.Sort {
	case opregistry.SortTensor:
		return func(at unsafe.Pointer, a *abi.Arg, o *operands) (err error) {
			*(**tensor.Tensor)(at), err = o.tensor(address(a.Value))
			return err
		}
	case opregistry.SortTensors:
		return func(at unsafe.Pointer, a *abi.Arg, o *operands) (err error) {
			*(*[]*tensor.Tensor)(at), err = o.list((*abi.List)(address(a.Value)))
			return err
		}
	case opregistry.SortLists:
		return func(at unsafe.Pointer, a *abi.Arg, o *operands) (err error) {
			*(*[][]*tensor.Tensor)(at), err = o.lists((*abi.List)(address(a.Value)))
			return err
		}
	case opregistry.SortFloat:
		return floatSetter(p.Type)
	case opregistry.SortInts:
		return intsSetter(p.Type)
	case opregistry.SortInt:
		return intSetter(p)
	}
	return nil
}

func floatSetter(t reflect.Type) func(at unsafe.Pointer, a *abi.Arg, o *operands) error {
	switch {
	case t == reflect.TypeFor[opregistry.OptionalFloat]():
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			*(*opregistry.OptionalFloat)(at) = opregistry.Float(float32(math.Float64frombits(a.Value)))
			return nil
		}
	case t.Kind() == reflect.Float32:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			*(*float32)(at) = float32(math.Float64frombits(a.Value))
			return nil
		}
	case t.Kind() == reflect.Float64:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			*(*float64)(at) = math.Float64frombits(a.Value)
			return nil
		}
	}
	return nil
}

func intsSetter(t reflect.Type) func(at unsafe.Pointer, a *abi.Arg, o *operands) error {
	switch t {
	case reflect.TypeFor[[]int]():
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) (err error) {
			*(*[]int)(at), err = numbers((*abi.List)(address(a.Value)))
			return err
		}
	case reflect.TypeFor[attention.WindowSize]():
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			n, err := numbers((*abi.List)(address(a.Value)))
			if err == nil && len(n) != 2 {
				err = fmt.Errorf("given %d numbers, want 2", len(n))
			}
			if err == nil {
				*(*attention.WindowSize)(at) = attention.Window(n[0], n[1])
			}
			return err
		}
	}
	return nil
}

func intSetter(p *opregistry.Param) func(at unsafe.Pointer, a *abi.Arg, o *operands) error {
	if p.Type == reflect.TypeFor[opregistry.OptionalBool]() {
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			on, err := truth(int64(a.Value))
			*(*opregistry.OptionalBool)(at) = opregistry.Bool(on)
			return err
		}
	}
	valid := anyNumber
	if names := p.Values(); names != nil {
		valid = func(n int64) error {
			if _, ok := names[int(n)]; !ok {
				return fmt.Errorf("given %d, want the number of a value", n)
			}
			return nil
		}
	}
	switch p.Type.Kind() {
	case reflect.Bool:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) (err error) {
			*(*bool)(at), err = truth(int64(a.Value))
			return err
		}
	case reflect.Int:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			*(*int)(at) = int(int64(a.Value))
			return valid(int64(a.Value))
		}
	case reflect.Uint64:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			*(*uint64)(at) = a.Value
			return nil
		}
	case reflect.Uint8:
		return func(at unsafe.Pointer, a *abi.Arg, _ *operands) error {
			if a.Value > math.MaxUint8 {
				return fmt.Errorf("given %d, want the number of a value", int64(a.Value))
			}
			*(*uint8)(at) = uint8(a.Value)
			return valid(int64(a.Value))
		}
	}
	return nil
}

func anyNumber(int64) error { return nil }

func truth(n int64) (bool, error) {
	if n != 0 && n != 1 {
		return false, fmt.Errorf("given %d, want 0 or 1", n)
	}
	return n == 1, nil
}
