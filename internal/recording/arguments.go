package recording

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// argument is an argument as a file has it: a number, a bool or null, for a tensor the name of its
// view, null for none, and for lists of tensors lists of them.
type argument struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// view is a tensor of a call. Operands that are the same view are one.
type view struct {
	Name    string       `json:"name"` // that of the first operand
	DType   tensor.DType `json:"dtype"`
	Shape   tensor.Shape `json:"shape"`
	Strides []int        `json:"strides"`
	Read    bool         `json:"read"`    // the call depends on the content
	Written bool         `json:"written"` // the call changes it

	before *tensor.Tensor // contiguous; nil unless Read
	after  *tensor.Tensor // contiguous; nil unless Written, or if the call failed
}

// Recordable returns why calls of an op cannot be recorded, nil if they can.
func Recordable(op opregistry.Handle) error {
	for _, p := range op.Params() {
		if p.Sort == opregistry.SortNone {
			return fmt.Errorf("op %q cannot be recorded: argument %s of type %v has no form in C", op.Name(), p.Name, p.Type)
		}
	}
	return nil
}

// viewsOf lists the views of the operands of a call and their names by tensor. clone is a copy of
// the call by argcopy.Args, in which operands that are the same view are one tensor.
func viewsOf(args, clone opregistry.Call) (views []*view, names map[*tensor.Tensor]string) {
	names = map[*tensor.Tensor]string{}
	byName := map[string]*view{}
	original := args.Operands()
	for i, o := range clone.Operands() {
		if o.Tensor == nil {
			continue
		}
		name, known := names[o.Tensor]
		if !known {
			name = o.Name
			names[o.Tensor] = name
			v := &view{Name: name, DType: o.Tensor.DType(), Shape: o.Tensor.Shape(), Strides: original[i].Tensor.Strides(), before: o.Tensor}
			byName[name] = v
			views = append(views, v)
		}
		v := byName[name]
		v.Read = v.Read || o.Access != opregistry.AccessWrite
		v.Written = v.Written || o.Access != opregistry.AccessRead
	}
	for _, v := range views {
		if !v.Read {
			v.before = nil
		}
	}
	return views, names
}

// encodeArguments returns the arguments of a call, with the names of tensors.
func encodeArguments(op opregistry.Handle, args reflect.Value, names map[*tensor.Tensor]string) ([]argument, error) {
	var list []argument
	for _, p := range op.Params() {
		value, err := encode(args.FieldByIndex(p.Path), p.Sort, names)
		if err != nil {
			return nil, fmt.Errorf("op %q: argument %s: %w", op.Name(), p.Name, err)
		}
		list = append(list, argument{p.Name, value})
	}
	return list, nil
}

func encode(v reflect.Value, sort opregistry.Sort, names map[*tensor.Tensor]string) (json.RawMessage, error) {
	name := func(t *tensor.Tensor) *string {
		if t == nil {
			return nil
		}
		n := names[t]
		return &n
	}
	list := func(tensors []*tensor.Tensor) []*string {
		if tensors == nil {
			return nil
		}
		all := make([]*string, len(tensors))
		for i, t := range tensors {
			all[i] = name(t)
		}
		return all
	}
	switch sort {
	case opregistry.SortTensor:
		return json.Marshal(name(v.Interface().(*tensor.Tensor)))
	case opregistry.SortTensors:
		return json.Marshal(list(v.Interface().([]*tensor.Tensor)))
	case opregistry.SortLists:
		var all [][]*string
		for _, tensors := range v.Interface().([][]*tensor.Tensor) {
			all = append(all, list(tensors))
		}
		return json.Marshal(all)
	}
	switch {
	case v.CanInt():
		return strconv.AppendInt(nil, v.Int(), 10), nil
	case v.CanUint():
		return strconv.AppendUint(nil, v.Uint(), 10), nil
	case v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)):
		return json.Marshal(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	}
	return json.Marshal(v.Interface())
}

// decodeArguments fills an argument struct; tensors are looked up by name.
func decodeArguments(op opregistry.Handle, list []argument, args reflect.Value, tensors map[string]*tensor.Tensor) error {
	params := op.Params()
	if len(list) != len(params) {
		return fmt.Errorf("given %d arguments, want the %d of op %q", len(list), len(params), op.Name())
	}
	for i, p := range params {
		if list[i].Name != p.Name {
			return fmt.Errorf("argument %d: given %q, want %q of op %q", i, list[i].Name, p.Name, op.Name())
		}
		if err := decode(args.FieldByIndex(p.Path), p.Sort, list[i].Value, tensors); err != nil {
			return fmt.Errorf("argument %s of op %q: %w", p.Name, op.Name(), err)
		}
	}
	return nil
}

func decode(v reflect.Value, sort opregistry.Sort, text json.RawMessage, tensors map[string]*tensor.Tensor) error {
	find := func(name *string) (*tensor.Tensor, error) {
		if name == nil {
			return nil, nil
		}
		t, ok := tensors[*name]
		if !ok {
			return nil, fmt.Errorf("given tensor %q, want one of the tensors of the call", *name)
		}
		return t, nil
	}
	list := func(names []*string) ([]*tensor.Tensor, error) {
		if names == nil {
			return nil, nil
		}
		all := make([]*tensor.Tensor, len(names))
		for i, name := range names {
			var err error
			if all[i], err = find(name); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	switch sort {
	case opregistry.SortTensor:
		var name *string
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
		t, err := find(name)
		v.Set(reflect.ValueOf(t))
		return err
	case opregistry.SortTensors:
		var names []*string
		if err := json.Unmarshal(text, &names); err != nil {
			return err
		}
		all, err := list(names)
		v.Set(reflect.ValueOf(all))
		return err
	case opregistry.SortLists:
		var names [][]*string
		if err := json.Unmarshal(text, &names); err != nil {
			return err
		}
		if names == nil {
			return nil
		}
		all := make([][]*tensor.Tensor, len(names))
		for i := range names {
			var err error
			if all[i], err = list(names[i]); err != nil {
				return err
			}
		}
		v.Set(reflect.ValueOf(all))
		return nil
	}
	return decodeNumber(v, text)
}

// decodeNumber fills a scalar or a list of integers. A type with a text form, such as a dtype, is
// read as its number.
func decodeNumber(v reflect.Value, text json.RawMessage) error {
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(string(text), 10, v.Type().Bits())
		v.SetInt(n)
		return err
	case v.CanUint():
		n, err := strconv.ParseUint(string(text), 10, v.Type().Bits())
		v.SetUint(n)
		return err
	case v.CanFloat():
		var word string
		if json.Unmarshal(text, &word) != nil {
			word = string(text)
		}
		f, err := strconv.ParseFloat(word, v.Type().Bits())
		v.SetFloat(f)
		return err
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

// savedOf returns the record of saved state in an argument struct, the zero Value if it has none.
func savedOf(args reflect.Value) reflect.Value {
	for _, f := range reflect.VisibleFields(args.Type()) {
		if f.Type == reflect.TypeFor[*opregistry.Saved]() {
			return args.FieldByIndex(f.Index)
		}
	}
	return reflect.Value{}
}
