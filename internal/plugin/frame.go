package plugin

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/primus-fl/primus/vendors/loader"
)

// frame is the memory of one call. It is kept between calls, so that a call
// allocates little, and it lies on the heap, so that it does not move.
type frame struct {
	guard   loader.Guard
	call    abi.Call
	args    []abi.Arg
	tensors []abi.Tensor
	dims    []int64
	lists   []abi.List
	ints    []int64
	text    [textBytes]byte

	place  device.Device // where the operands lie
	native device.Native // of its backend; nil on the CPU
	onHost bool          // some lie in host memory
	status int32         // of the call
	err    error         // why the operands cannot be passed, or how the device failed

	packed []Any // of a function of TVM FFI
	result Any
	raised uintptr
}

// fail keeps the reason of a call that was not served, and returns its status.
func (f *frame) fail(status int32, reason string) int32 {
	f.text[copy(f.text[:textBytes-1], reason)] = 0
	return status
}

const textBytes = 512

// interval is a pair of numbers.
type interval interface{ Bounds() (int, int) }

// need counts the elements of each slice that the arguments of a call need.
type need struct{ tensors, dims, lists, ints int }

func (n *need) tensor(t *tensor.Tensor) {
	n.tensors++
	if t != nil {
		n.dims += 2 * len(t.Shape())
	}
}

func (n *need) add(v any) {
	switch v := v.(type) {
	case *tensor.Tensor:
		n.tensor(v)
	case []*tensor.Tensor:
		n.lists++
		for _, t := range v {
			n.tensor(t)
		}
	case [][]*tensor.Tensor:
		n.lists += 1 + len(v)
		for _, list := range v {
			for _, t := range list {
				n.tensor(t)
			}
		}
	case []int:
		n.lists++
		n.ints += len(v)
	case interval:
		n.lists++
		n.ints += 2
	}
}

// fill writes the arguments of a call into the frame. Addresses are taken after
// everything has its final place.
func (f *frame) fill(params []opregistry.Param, args reflect.Value, host uintptr) {
	var n need
	for i := range params {
		if p := &params[i]; p.Sort != opregistry.SortInt && p.Sort != opregistry.SortFloat {
			n.add(args.FieldByIndex(p.Path).Interface())
		}
	}
	f.args = resize(f.args, len(params))
	f.tensors, f.dims = resize(f.tensors, n.tensors)[:0], resize(f.dims, n.dims)[:0]
	f.lists, f.ints = resize(f.lists, n.lists)[:0], resize(f.ints, n.ints)[:0]
	f.place, f.native, f.onHost, f.err = device.Device{Type: device.TypeCPU}, nil, false, nil
	for i := range params {
		f.args[i] = f.arg(params[i].Sort, args.FieldByIndex(params[i].Path))
	}
	f.text[0] = 0
	f.call = abi.Call{
		StructSize: uint32(unsafe.Sizeof(f.call)), NArgs: uint32(len(params)), Args: address(f.args),
		Host: host, Error: uintptr(unsafe.Pointer(&f.text)), ErrorBytes: textBytes,
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

func (f *frame) arg(sort opregistry.Sort, v reflect.Value) abi.Arg {
	switch sort {
	case opregistry.SortInt:
		return integer(v)
	case opregistry.SortFloat:
		return float(v)
	}
	arg := abi.Arg{Sort: uint32(sort)}
	switch v := v.Interface().(type) {
	case *tensor.Tensor:
		if v == nil {
			return abi.Arg{}
		}
		arg.Value = uint64(f.tensor(v))
	case []*tensor.Tensor:
		arg.Value = uint64(f.list(f.tensorList(v)))
	case [][]*tensor.Tensor:
		at := len(f.lists)
		f.lists = f.lists[:at+1+len(v)]
		for i, list := range v {
			f.lists[at+1+i] = f.tensorList(list)
		}
		f.lists[at] = abi.List{Count: uint64(len(v)), Items: address(f.lists[at+1:])}
		arg.Value = uint64(uintptr(unsafe.Pointer(&f.lists[at])))
	case []int:
		arg.Value = uint64(f.numbers(v...))
	case interval:
		arg.Value = uint64(f.numbers(v.Bounds()))
	}
	return arg
}

func integer(v reflect.Value) abi.Arg {
	arg := abi.Arg{Sort: abi.ArgInt}
	if option, ok := v.Interface().(interface{ Get() (bool, bool) }); ok {
		given, set := option.Get()
		if !set {
			return abi.Arg{}
		}
		v = reflect.ValueOf(given)
	}
	switch {
	case v.Kind() == reflect.Bool && v.Bool():
		arg.Value = 1
	case v.Kind() == reflect.Bool:
	case v.CanInt():
		arg.Value = uint64(v.Int())
	default:
		arg.Value = v.Uint()
	}
	return arg
}

func (f *frame) numbers(v ...int) uintptr {
	at := len(f.ints)
	for _, n := range v {
		f.ints = append(f.ints, int64(n))
	}
	return f.list(abi.List{Count: uint64(len(v)), Items: address(f.ints[at:])})
}

func float(v reflect.Value) abi.Arg {
	if option, ok := v.Interface().(interface{ Get() (float32, bool) }); ok {
		given, set := option.Get()
		if !set {
			return abi.Arg{}
		}
		return abi.Arg{Sort: abi.ArgFloat, Value: math.Float64bits(float64(given))}
	}
	return abi.Arg{Sort: abi.ArgFloat, Value: math.Float64bits(v.Float())}
}

func (f *frame) list(l abi.List) uintptr {
	f.lists = append(f.lists, l)
	return uintptr(unsafe.Pointer(&f.lists[len(f.lists)-1]))
}

func (f *frame) tensorList(list []*tensor.Tensor) abi.List {
	at := len(f.tensors)
	for _, t := range list {
		f.tensor(t)
	}
	return abi.List{Count: uint64(len(list)), Items: address(f.tensors[at:])}
}

// tensor adds the description of a tensor and returns its address.
func (f *frame) tensor(t *tensor.Tensor) uintptr {
	var d abi.Tensor
	if t != nil {
		kind := t.DType().DLPack()
		at := len(f.dims)
		for _, n := range t.Shape() {
			f.dims = append(f.dims, int64(n))
		}
		for _, n := range t.Strides() {
			f.dims = append(f.dims, int64(n))
		}
		data, offset := uintptr(t.Pointer()), uint64(0)
		if t.Place() != device.PlaceHost {
			data, offset = f.onDevice(t)
		} else if data != 0 {
			f.onHost = true
		}
		d = abi.Tensor{
			Data: data, ByteOffset: offset, DeviceType: int32(t.Device().Type), DeviceID: int32(t.Device().Index),
			NDim: int32(len(t.Shape())), Code: kind.Code, Bits: kind.Bits, Lanes: kind.Lanes,
			Shape: address(f.dims[at:]), Strides: address(f.dims[at+len(t.Shape()):]),
		}
	}
	f.tensors = append(f.tensors, d)
	return uintptr(unsafe.Pointer(&f.tensors[len(f.tensors)-1]))
}

// onDevice returns the memory object of a tensor in memory of a device, and where it begins there.
// It keeps the device of the call.
func (f *frame) onDevice(t *tensor.Tensor) (handle uintptr, offset uint64) {
	native, ok := device.As[device.Native](t.Storage().Backend())
	if !ok {
		f.err = opregistry.Unsupported("operands on %v: its backend does not share memory with libraries", t.Device())
		return 0, 0
	}
	if f.native != nil && f.place != t.Device() {
		f.err = opregistry.Unsupported("operands on %v and %v, want one device", f.place, t.Device())
		return 0, 0
	}
	f.native, f.place = native, t.Device()
	if t.NumElements() == 0 {
		return 0, 0
	}
	if handle, offset, ok = native.NativeMemory(t.Pointer()); !ok {
		f.err = fmt.Errorf("%v is not in memory that its backend has", t)
	}
	return handle, offset
}

// errorText returns the text that the plugin has written to the error buffer, escaped for a log.
func errorText(text []byte, without string) string {
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	if len(text) == 0 {
		return without
	}
	return plaintext.Text(string(text))
}
