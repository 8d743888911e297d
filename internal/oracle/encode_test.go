package oracle

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"

	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// request holds the arguments of a call as the Python side reads them.
type request struct {
	Op      string         `json:"op"`
	Args    map[string]any `json:"args"`
	Tensors [][2]any       `json:"tensors"` // shape and dtype of each

	operands []*tensor.Tensor
}

// newRequest encodes an argument struct: its fields keep their names, tensors are
// numbered, and floats are strings, because JSON has no infinities.
func newRequest(op string, args any) *request {
	r := &request{Op: op, Tensors: [][2]any{}}
	r.Args = r.fields(reflect.ValueOf(args))
	if keep := kept(args); keep != nil {
		r.Args["Keep"] = r.tensor(keep)
	}
	return r
}

// kept returns the elements that dropout keeps in a call. PyTorch cannot compute them, because its
// random bits differ.
func kept(args any) *tensor.Tensor {
	switch a := args.(type) {
	case dropout.DropoutFwdArgs:
		return drawn(a.Seed, a.Offset, a.DropoutProbability, a.Input.NumElements())
	case attention.FusedAttnFwdArgs:
		d := a.Dims()
		return drawn(a.RNGSeed, a.RNGOffset, a.PDropout, d.Batch, d.Heads, d.SeqQ, d.SeqKV)
	case attention.FusedAttnBwdArgs:
		return kept(a.Fwd())
	}
	return nil
}

// drawn returns 1 for each element that a dropout with probability p keeps, and 0 for the others.
func drawn(seed, offset uint64, p float32, shape ...int) *tensor.Tensor {
	if p == 0 {
		return nil
	}
	keep := make([]float64, tensor.Shape(shape).NumElements())
	for n := range keep {
		if float64(random.Bits(seed, offset, uint64(n))) >= math.Floor(float64(p)*0x1p32) {
			keep[n] = 1
		}
	}
	x, err := tensor.FromSlice(keep, shape...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return x
}

func (r *request) fields(v reflect.Value) map[string]any {
	values := make(map[string]any)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Name == "Saved" || !f.IsExported():
		case f.Anonymous:
			for name, value := range r.fields(v.Field(i)) {
				values[name] = value
			}
		default:
			values[f.Name] = r.value(v.Field(i))
		}
	}
	return values
}

func (r *request) value(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case *tensor.Tensor:
		return r.tensor(x)
	case opregistry.OptionalFloat:
		if f, given := x.Get(); given {
			return number(float64(f))
		}
		return nil
	case opregistry.OptionalBool:
		if b, given := x.Get(); given {
			return b
		}
		return nil
	case attention.WindowSize:
		left, right := x.Bounds()
		return []int{left, right}
	case optim.AdamMode:
		return int(x)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		return number(v.Float())
	case reflect.Struct:
		return map[string]any{"fields": r.fields(v)}
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = r.value(v.Index(i))
		}
		return items
	default:
		return v.Interface()
	}
}

func number(f float64) any { return map[string]string{"float": strconv.FormatFloat(f, 'g', -1, 64)} }

func (r *request) tensor(x *tensor.Tensor) any {
	if x == nil {
		return nil
	}
	r.Tensors = append(r.Tensors, [2]any{append([]int{}, x.Shape()...), x.DType().String()})
	r.operands = append(r.operands, x)
	return map[string]int{"tensor": len(r.operands) - 1}
}

// writeValues writes the elements of a tensor as float64.
func writeValues(w io.Writer, x *tensor.Tensor) error {
	raw := make([]byte, 0, 8*x.NumElements())
	for _, v := range x.Float64s() {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	_, err := w.Write(raw)
	return err
}

// readValues reads the elements of a tensor and rounds them to its dtype.
func readValues(r io.Reader, x *tensor.Tensor) error {
	raw := make([]byte, 8*x.NumElements())
	if _, err := io.ReadFull(r, raw); err != nil {
		return err
	}
	values := make([]float64, x.NumElements())
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return x.SetFloat64s(values)
}
