package opmanager

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// CopyArgs returns a copy of the arguments of a call with contiguous copies of all tensors.
// Operands that are the same view in a are the same view in the copy.
func CopyArgs(a opregistry.Call) (opregistry.Call, error) {
	c := argCopier{}
	clone, args := a.Clone()
	if err := c.fields(args); err != nil {
		return clone, err
	}
	before := a.Operands()
	for i, o := range clone.Operands() {
		if o.Tensor != nil && o.Tensor == before[i].Tensor {
			return clone, fmt.Errorf("operand %q is in a place where it cannot be copied", o.Name)
		}
	}
	return clone, nil
}

// argCopier replaces the tensors that an argument struct points to with copies.
type argCopier struct{ done []tensorCopy }

type tensorCopy struct{ from, to *tensor.Tensor }

func (c *argCopier) fields(v reflect.Value) error {
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
			if p != nil {
				clone := *p
				v.Set(reflect.ValueOf(&clone))
			}
		}
	}
	return nil
}

// holdsTensors reports whether a slice type holds tensors or slices of tensors.
func holdsTensors(t reflect.Type) bool {
	for t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t == reflect.TypeFor[*tensor.Tensor]()
}

func (c *argCopier) tensor(t *tensor.Tensor) (*tensor.Tensor, error) {
	for _, d := range c.done {
		if d.from == t || tensor.SameView(d.from, t) {
			return d.to, nil
		}
	}
	clone, err := copyTensor(t)
	if err != nil {
		return nil, err
	}
	c.done = append(c.done, tensorCopy{t, clone})
	return clone, nil
}

// copyTensor returns a contiguous tensor in Go memory with the same content.
func copyTensor(t *tensor.Tensor) (*tensor.Tensor, error) {
	words := make([]uint64, (t.NumElements()*t.DType().Size()+7)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), t.NumElements()*t.DType().Size())
	clone, err := tensor.FromBytes(raw, t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return clone, clone.CopyFrom(t)
}
