package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// errShort is a message that ends too early.
var errShort = errors.New("the message of a call is too short")

// decoder reads what an encoder has written. It keeps the first error.
type decoder struct {
	body    []byte
	data    []byte // of the shared memory
	tensors []*tensor.Tensor
	err     error
}

// maxRank is more than the rank of any tensor.
const maxRank = 16

// decode returns the arguments of a call of op, whose tensors lie in data.
func decode(op opregistry.Handle, body, data []byte) (reflect.Value, error) {
	d := &decoder{body: body, data: data}
	for range d.length(10) {
		d.table()
	}
	args := reflect.New(op.Args()).Elem()
	d.group(args)
	if d.err == nil && len(d.body) > 0 {
		d.err = fmt.Errorf("the message of a call of op %q has %d bytes too many", op.Name(), len(d.body))
	}
	return args, d.err
}

// take returns the next n bytes, zeros after an error.
func (d *decoder) take(n int) []byte {
	if d.err == nil && len(d.body) < n {
		d.err = errShort
	}
	if d.err != nil {
		return make([]byte, n)
	}
	taken := d.body[:n]
	d.body = d.body[n:]
	return taken
}

func (d *decoder) count() int { return int(binary.LittleEndian.Uint32(d.take(4))) }

func (d *decoder) number64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

// length reads a count of items that take at least this many bytes each.
func (d *decoder) length(least int) int {
	n := d.count()
	if d.err == nil && n > len(d.body)/least {
		d.err = errShort
	}
	if d.err != nil {
		return 0
	}
	return n
}

// table reads a tensor of the table.
func (d *decoder) table() {
	head := d.take(2)
	dtype, rank := tensor.DType(head[0]), int(head[1])
	at := d.number64()
	if d.err == nil && (!dtype.Valid() || rank > maxRank || at > math.MaxInt64) {
		d.err = fmt.Errorf("the message of a call has a tensor of dtype %d and rank %d at %d", head[0], rank, at)
	}
	if d.err != nil {
		return
	}
	shape := make([]int, rank)
	for i := range shape {
		n := d.number64()
		if n > uint64(len(d.data)) && d.err == nil {
			d.err = fmt.Errorf("the message of a call has a tensor with an axis of %d", n)
		}
		shape[i] = int(n)
	}
	if d.err != nil {
		return
	}
	t, err := shared(d.data, dtype, int(at), shape...)
	if err != nil {
		d.err = err
		return
	}
	d.tensors = append(d.tensors, t)
}

// group reads the fields of a struct.
func (d *decoder) group(v reflect.Value) {
	for i := range v.NumField() {
		d.field(v.Field(i))
	}
}

func (d *decoder) field(v reflect.Value) {
	switch v.Interface().(type) {
	case *opregistry.Saved:
	case *tensor.Tensor:
		v.Set(reflect.ValueOf(d.tensor()))
	case []*tensor.Tensor:
		v.Set(reflect.ValueOf(d.list()))
	case [][]*tensor.Tensor:
		lists := make([][]*tensor.Tensor, d.length(4))
		for i := range lists {
			lists[i] = d.list()
		}
		v.Set(reflect.ValueOf(lists))
	case []int:
		numbers := make([]int, d.length(8))
		for i := range numbers {
			numbers[i] = int(d.number64())
		}
		v.Set(reflect.ValueOf(numbers))
	case opregistry.OptionalFloat:
		given := d.count() != 0
		if f := float32(math.Float64frombits(d.number64())); given {
			v.Set(reflect.ValueOf(opregistry.Float(f)))
		}
	case opregistry.OptionalBool:
		given, on := d.count() != 0, d.count() != 0
		if given {
			v.Set(reflect.ValueOf(opregistry.Bool(on)))
		}
	case attention.WindowSize:
		left, right := int(d.number64()), int(d.number64())
		v.Set(reflect.ValueOf(attention.Window(left, right)))
	default:
		if v.Kind() == reflect.Struct {
			d.group(v)
		} else {
			d.scalar(v)
		}
	}
}

func (d *decoder) scalar(v reflect.Value) {
	bits := d.number64()
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(bits != 0)
	case v.CanInt():
		v.SetInt(int64(bits))
	case v.CanUint():
		v.SetUint(bits)
	default:
		v.SetFloat(math.Float64frombits(bits))
	}
}

func (d *decoder) tensor() *tensor.Tensor {
	n := d.count()
	if d.err == nil && n > len(d.tensors) {
		d.err = fmt.Errorf("the message of a call names tensor %d of %d", n, len(d.tensors))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	return d.tensors[n-1]
}

func (d *decoder) list() []*tensor.Tensor {
	list := make([]*tensor.Tensor, d.length(4))
	for i := range list {
		list[i] = d.tensor()
	}
	return list
}
