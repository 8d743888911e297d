package torchfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// field returns an attribute of an object, nil without one.
func field(v any, name string) any {
	o, ok := v.(*object)
	if !ok {
		return nil
	}
	d, ok := o.state.(*dict)
	if !ok {
		return nil
	}
	return d.get(name)
}

func (d *dict) get(name string) any {
	for _, pair := range d.pairs {
		if pair[0] == any(name) {
			return pair[1]
		}
	}
	return nil
}

// entries returns the keys and values of a dict, or of an object that is one.
func entries(v any) ([][2]any, bool) {
	if o, ok := v.(*object); ok && o.class == "collections.OrderedDict" {
		if o.state == nil {
			return nil, true
		}
		v = o.state
	}
	d, ok := v.(*dict)
	if !ok {
		return nil, false
	}
	return d.pairs, true
}

// ints returns the whole numbers of a tuple or a torch.Size.
func ints(v any) ([]int, bool) {
	if o, ok := v.(*object); ok && o.class == "torch.Size" && len(o.args) == 1 {
		v = o.args[0]
	}
	t, ok := v.(tuple)
	if !ok || len(t) > maxDims {
		return nil, false
	}
	all := make([]int, len(t))
	for i, item := range t {
		n, ok := item.(int64)
		if !ok || n < 0 || n > maxElements {
			return nil, false
		}
		all[i] = int(n)
	}
	return all, true
}

// maxElements is the largest size that is read.
const maxElements = 1 << 40

// dtypes are the types of elements, by what torch calls them.
var dtypes = map[class]tensor.DType{
	"torch.float64": tensor.F64, "torch.float32": tensor.F32, "torch.float16": tensor.F16, "torch.bfloat16": tensor.BF16,
	"torch.float8_e4m3fn": tensor.F8E4M3, "torch.float8_e5m2": tensor.F8E5M2,
	"torch.int64": tensor.I64, "torch.int32": tensor.I32, "torch.int16": tensor.I16, "torch.uint8": tensor.U8, "torch.bool": tensor.Bool,
	"torch.DoubleStorage": tensor.F64, "torch.FloatStorage": tensor.F32, "torch.HalfStorage": tensor.F16, "torch.BFloat16Storage": tensor.BF16,
	"torch.LongStorage": tensor.I64, "torch.IntStorage": tensor.I32, "torch.ShortStorage": tensor.I16, "torch.ByteStorage": tensor.U8, "torch.BoolStorage": tensor.Bool,
}

// product returns the number of elements of a shape, false if it is too large.
func product(shape []int) (int, bool) {
	n := 1
	for _, size := range shape {
		if size > 0 && n > maxElements/size {
			return 0, false
		}
		n *= size
	}
	return n, true
}

// describe returns the kind of a value, or a number, for errors. A value as a whole may be endless.
func describe(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case *object:
		return "an object of class " + string(v.class)
	case nil:
		return "nothing"
	default:
		return strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", v), "*"), "torchfile.")
	}
}
