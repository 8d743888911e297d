package sandbox

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// placed is a tensor of a call with the place of its elements in shared memory, which are
// contiguous and in row-major order.
type placed struct {
	tensor        *tensor.Tensor
	at            int
	read, written bool
}

// encoder turns the arguments of a call into a message. A view that is given twice is one tensor of
// the message, so that a call in place is also in place in the other process.
//
// A message is a count of tensors, each with dtype, rank, place and shape, and then the
// fields of the argument struct in order: numbers of tensors, counted from 1, and 0 for
// none; counts in front of lists; numbers as they are. Everything is little-endian.
type encoder struct {
	tensors []placed
	index   map[unsafe.Pointer][]int // numbers of tensors by address
	fields  []byte
	body    []byte
	size    int // of the tensors in shared memory
}

// encode prepares the message for a call. Tensors that the op does not list as operands are marked
// as read.
func (e *encoder) encode(op opregistry.Handle, args any) error {
	e.tensors, e.fields, e.size = e.tensors[:0], e.fields[:0], 0
	if e.index == nil {
		e.index = map[unsafe.Pointer][]int{}
	}
	clear(e.index)
	if err := e.group(reflect.ValueOf(args)); err != nil {
		return err
	}
	listed := make([]bool, len(e.tensors))
	for _, o := range opregistry.CallOf(op, args).Operands() {
		if o.Tensor == nil {
			continue
		}
		n, err := e.number(o.Tensor)
		if err != nil {
			return err
		}
		if int(n) > len(listed) {
			return fmt.Errorf("BUG: operand %q of op %q is not an argument", o.Name, op.Name())
		}
		p := &e.tensors[n-1]
		listed[n-1] = true
		p.read = p.read || o.Access != opregistry.AccessWrite
		p.written = p.written || o.Access != opregistry.AccessRead
	}
	e.body = binary.LittleEndian.AppendUint32(e.body[:0], uint32(len(e.tensors)))
	for i := range e.tensors {
		p := &e.tensors[i]
		p.read = p.read || !listed[i]
		e.body = append(e.body, byte(p.tensor.DType()), byte(len(p.tensor.Shape())))
		e.body = binary.LittleEndian.AppendUint64(e.body, uint64(p.at))
		for _, n := range p.tensor.Shape() {
			e.body = binary.LittleEndian.AppendUint64(e.body, uint64(n))
		}
	}
	e.body = append(e.body, e.fields...)
	return nil
}

// group appends the fields of a struct.
func (e *encoder) group(v reflect.Value) error {
	for i := range v.NumField() {
		if err := e.field(v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// field appends an argument; plugin.Layout has found that its type has a form.
func (e *encoder) field(v reflect.Value) error {
	switch v := v.Interface().(type) {
	case *opregistry.Saved:
		return nil
	case *tensor.Tensor:
		return e.tensor(v)
	case []*tensor.Tensor:
		return e.list(v)
	case [][]*tensor.Tensor:
		e.count(len(v))
		for _, list := range v {
			if err := e.list(list); err != nil {
				return err
			}
		}
		return nil
	case []int:
		e.count(len(v))
		for _, n := range v {
			e.number64(uint64(n))
		}
		return nil
	case opregistry.OptionalFloat:
		f, given := v.Get()
		e.count(map[bool]int{true: 1}[given])
		e.number64(math.Float64bits(float64(f)))
		return nil
	case opregistry.OptionalBool:
		on, given := v.Get()
		e.count(map[bool]int{true: 1}[given])
		e.count(map[bool]int{true: 1}[on])
		return nil
	case attention.WindowSize:
		left, right := v.Bounds()
		e.number64(uint64(left))
		e.number64(uint64(right))
		return nil
	}
	switch {
	case v.Kind() == reflect.Struct:
		return e.group(v)
	case v.Kind() == reflect.Bool && v.Bool():
		e.number64(1)
	case v.Kind() == reflect.Bool:
		e.number64(0)
	case v.CanInt():
		e.number64(uint64(v.Int()))
	case v.CanUint():
		e.number64(v.Uint())
	default:
		e.number64(math.Float64bits(v.Float()))
	}
	return nil
}

func (e *encoder) count(n int) { e.fields = binary.LittleEndian.AppendUint32(e.fields, uint32(n)) }

func (e *encoder) number64(n uint64) { e.fields = binary.LittleEndian.AppendUint64(e.fields, n) }

func (e *encoder) list(list []*tensor.Tensor) error {
	e.count(len(list))
	for _, t := range list {
		if err := e.tensor(t); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) tensor(t *tensor.Tensor) error {
	n := uint32(0)
	if t != nil {
		var err error
		if n, err = e.number(t); err != nil {
			return err
		}
	}
	e.count(int(n))
	return nil
}

// number returns the number of a tensor in the message; a new tensor gets a number and a place.
func (e *encoder) number(t *tensor.Tensor) (uint32, error) {
	if t.Device().Type != device.TypeCPU {
		return 0, opregistry.Unsupported("a plugin in a process of its own serves tensors in the memory of the CPU, not on %v", t.Device())
	}
	known := e.index[t.Pointer()]
	for _, i := range known {
		if tensor.SameView(e.tensors[i].tensor, t) {
			return uint32(i + 1), nil
		}
	}
	e.index[t.Pointer()] = append(known, len(e.tensors))
	e.tensors = append(e.tensors, placed{tensor: t, at: e.size})
	e.size = aligned(e.size + t.NumElements()*t.DType().Size())
	return uint32(len(e.tensors)), nil
}

// in returns the tensor in shared memory for a tensor of a call.
func (p *placed) in(data []byte) (*tensor.Tensor, error) {
	return shared(data, p.tensor.DType(), p.at, p.tensor.Shape()...)
}

// shared returns a tensor whose elements are in a part of shared memory.
func shared(data []byte, d tensor.DType, at int, shape ...int) (*tensor.Tensor, error) {
	elements := 1
	for _, n := range shape {
		if n != 0 && elements > len(data)/n {
			return nil, fmt.Errorf("a tensor of shape %v is larger than the %d bytes of shared memory", shape, len(data))
		}
		elements *= n
	}
	size := elements * d.Size()
	if at < 0 || at > len(data) || size > len(data)-at {
		return nil, fmt.Errorf("a tensor lies at %d to %d of %d bytes of shared memory", at, at+size, len(data))
	}
	return tensor.FromBytes(data[at:at+size], d, shape...)
}
