package opmanager

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ExpectedCall is a call that a program is going to make, one for all calls of its op with the same
// dtypes, shapes, strides and attributes.
type ExpectedCall struct {
	Op     opregistry.Handle
	Places []Place // where in the model the calls come from

	args opregistry.Call // whose floating-point operands have no memory: see outline
	on   device.Type     // the type of device that the operands lie on
}

// String returns the name of the op and a description of the arguments.
func (c ExpectedCall) String() string { return c.Op.Name() + " " + c.args.Describe() }

// traceID is the id of the impls of a Manager that traces.
const traceID = "trace"

// Trace returns the calls that run makes on the Manager that it is given. That Manager knows the
// ops of m and computes none of them, apart from those whose results decide about later calls: ops
// that write integers, such as the experts of a token. The result refers to no memory of the
// operands. Operands on a device are read and written only by such an op, which runs on copies of
// them on the host, and where the type of the device is one that no impl serves.
func (m *Manager) Trace(run func(*Manager) error) ([]ExpectedCall, error) {
	snap := m.table.Load().registry
	source := opregistry.Source{Name: traceID}
	for i, op := range snap.Ops() {
		impl := opregistry.Impl{Op: op, ID: traceID, Kind: opregistry.KindFlagos}
		impl.Support.Devices = append(impl.Support.Devices, device.TypeCPU)
		impl.Support.Devices = append(impl.Support.Devices, snap.DeviceTypes()...)
		var real any
		if !op.Collective() { // of which other processes would have to be a part
			real = computing(snap.Impls(i))
		}
		impl.Run = opregistry.Untyped(op, func(x *opregistry.Exec, args any) error {
			call := opregistry.CallOf(op, args)
			switch {
			case real == nil || !slices.ContainsFunc(call.Operands(), writesIntegers):
				return nil
			case call.Place() != device.PlaceHost:
				return opregistry.Unsupported("operands on a device") // a copy of the call is computed on the host
			}
			return call.Run(real, x)
		})
		source.Impls = append(source.Impls, impl)
	}
	registry := opregistry.NewRegistry()
	if err := registry.Register(source); err != nil {
		return nil, fmt.Errorf("trace calls: %w", err)
	}
	tracer := New(registry, oppolicy.Default(), Settings{Exec: m.core.exec})
	defer tracer.Close()
	t := &trace{byKey: map[string]int{}}
	defer tracer.Tap(t)()
	err := run(tracer)
	if err = cmp.Or(err, t.err); err != nil {
		return nil, fmt.Errorf("trace calls: %w", err)
	}
	return t.calls, nil
}

// computing returns the Run of the impl that computes an op in a trace, nil for none.
func computing(entries []opregistry.Entry) any {
	for _, kind := range []opregistry.Kind{opregistry.KindFlagos, opregistry.KindReference} {
		for i := range entries {
			if e := &entries[i]; e.Kind == kind && e.Support.Devices == nil && (e.Available == nil || e.Available() == nil) {
				return e.Run
			}
		}
	}
	return nil
}

func writesIntegers(o opregistry.Operand) bool {
	return o.Tensor != nil && o.Access != opregistry.AccessRead && !o.Tensor.DType().IsFloat()
}

// trace is a Tap that keeps one call of each kind.
type trace struct {
	mu    sync.Mutex
	byKey map[string]int // index into calls
	calls []ExpectedCall
	err   error
}

// Begin implements Tap.
func (t *trace) Begin(c TappedCall) func(ImplInfo, error) error {
	_, fields := c.Args.Clone()
	on, at := c.Args.Place().Type(), Place{c.Layer, c.Phase}
	key := callKey(c.Op, c.Args, fields) + on.String()
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := t.byKey[key]
	if !known {
		args, err := argcopy.Replace(c.Args, outline)
		t.err = cmp.Or(t.err, err)
		i = len(t.calls)
		t.byKey[key] = i
		t.calls = append(t.calls, ExpectedCall{Op: c.Op, args: args, on: on})
	}
	if e := &t.calls[i]; !slices.Contains(e.Places, at) {
		e.Places = append(e.Places, at)
	}
	return nil
}

// callKey returns a text that is equal for calls of an op with equal dtypes, shapes and strides of
// the operands and equal attributes. fields is the argument struct of the call.
func callKey(op opregistry.Handle, call opregistry.Call, fields reflect.Value) string {
	var key strings.Builder
	key.WriteString(op.Name())
	for _, o := range call.Operands() {
		if t := o.Tensor; t != nil {
			fmt.Fprintf(&key, "|%s %v %v %v", o.Name, t.DType(), t.Shape(), t.Strides())
		}
	}
	for _, p := range op.Params() {
		if p.Sort == opregistry.SortInt || p.Sort == opregistry.SortFloat || p.Sort == opregistry.SortInts {
			fmt.Fprintf(&key, "|%s=%v", p.Name, fields.FieldByIndex(p.Path))
		}
	}
	return key.String()
}

// outline returns a tensor in host memory that describes t. Integers are copied, since they say
// where an op reads; of other elements there is no memory, and nobody may access them.
func outline(t *tensor.Tensor) (*tensor.Tensor, error) {
	if !t.DType().IsFloat() {
		return argcopy.Tensor(t)
	}
	d := t.DLPack()
	d.Data, d.ByteOffset = unsafe.Pointer(new([64]byte)), 0 // an address of its own
	d.Device = tensor.DLDevice{Type: int32(device.TypeCPU)}
	return tensor.FromDLPack(&d, nil)
}

// filled returns a tensor with the shape and the strides of an outline, whose elements are 1.
func filled(outline *tensor.Tensor) (*tensor.Tensor, error) {
	if !outline.DType().IsFloat() {
		return argcopy.Tensor(outline)
	}
	span := min(1, outline.NumElements())
	for i, n := range outline.Shape() {
		span += max(0, n-1) * outline.Strides()[i]
	}
	size := outline.DType().Size()
	words := make([]uint64, (span*size+7)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), span*size)
	t, err := tensor.FromBytes(raw, outline.DType(), span)
	if err == nil && span > 0 {
		t.Set(1, 0)
		for done := size; done < len(raw); done *= 2 {
			copy(raw[done:], raw[:done])
		}
	}
	if err != nil {
		return nil, err
	}
	return t.AsStrided(outline.Shape(), outline.Strides(), 0)
}
