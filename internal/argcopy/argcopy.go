package argcopy

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Args returns a copy of the arguments of a call with contiguous copies of all tensors, in host
// memory. Operands that are the same view in a are the same view in the copy.
func Args(a opregistry.Call) (opregistry.Call, error) { return Replace(a, Tensor) }

// Replace returns a copy of the arguments of a call with other tensors. Operands that are the same
// view in a are the same tensor in the copy.
func Replace(a opregistry.Call, by func(*tensor.Tensor) (*tensor.Tensor, error)) (opregistry.Call, error) {
	c := copier{tensor: once(by)}
	clone, args := a.Clone()
	if err := c.fields(args); err != nil {
		return clone, err
	}
	return clone, replaced(a, clone, func(*tensor.Tensor) bool { return true })
}

// replaced returns an error unless a clone of a call has other tensors in place of those that it
// should.
func replaced(a, clone opregistry.Call, should func(*tensor.Tensor) bool) error {
	before := a.Operands()
	for i, o := range clone.Operands() {
		if o.Tensor != nil && o.Tensor == before[i].Tensor && should(o.Tensor) {
			return fmt.Errorf("operand %q is in a place where it cannot be copied", o.Name)
		}
	}
	return nil
}

// copier replaces what an argument struct points to.
type copier struct {
	tensor    func(*tensor.Tensor) (*tensor.Tensor, error)
	keepSaved bool // the record of a family is not copied
}

// once returns a function that calls replace once for each view.
func once(replace func(*tensor.Tensor) (*tensor.Tensor, error)) func(*tensor.Tensor) (*tensor.Tensor, error) {
	type pair struct{ from, to *tensor.Tensor }
	done := map[unsafe.Pointer][]pair{} // by address
	return func(t *tensor.Tensor) (*tensor.Tensor, error) {
		p := t.Pointer()
		for _, d := range done[p] {
			if d.from == t || tensor.SameView(d.from, t) {
				return d.to, nil
			}
		}
		to, err := replace(t)
		if err == nil {
			done[p] = append(done[p], pair{t, to})
		}
		return to, err
	}
}

func (c *copier) fields(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if err := c.fields(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.IsNil() || !holdsTensors(v.Type()) {
			return nil
		}
		clone := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(clone, v)
		v.Set(clone)
		for i := range v.Len() {
			if err := c.fields(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		switch p := v.Interface().(type) {
		case *tensor.Tensor:
			if p == nil {
				return nil
			}
			clone, err := c.tensor(p)
			if err != nil {
				return err
			}
			v.Set(reflect.ValueOf(clone))
		case *opregistry.Saved:
			if p != nil && !c.keepSaved {
				clone := *p
				v.Set(reflect.ValueOf(&clone))
			}
		}
	}
	return nil
}

// holdsTensors reports whether values of a type lead to tensors.
func holdsTensors(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return holdsTensors(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holdsTensors(f.Type) {
				return true
			}
		}
		return false
	default:
		return t == reflect.TypeFor[*tensor.Tensor]()
	}
}

// Tensor returns a contiguous tensor in host memory with the same content.
func Tensor(t *tensor.Tensor) (*tensor.Tensor, error) {
	words := make([]uint64, (t.NumElements()*t.DType().Size()+7)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), t.NumElements()*t.DType().Size())
	clone, err := tensor.FromBytes(raw, t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return clone, clone.CopyFrom(t)
}
