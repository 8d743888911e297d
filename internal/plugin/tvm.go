package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/primus-fl/primus/vendors/loader"
)

// inspectMapping returns the mapping file of a library, nil if it has none. The file decides how
// functions are called, so it must be as private as the library.
func inspectMapping(library string) (*File, error) {
	path := library + Suffix
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	fault := func(err error) (*File, error) {
		return nil, fmt.Errorf("its mapping file %s: %w", filepath.Base(path), plainError(err))
	}
	resolved, err := withoutLinks(path)
	if err != nil {
		return fault(err)
	}
	file, info, err := openRegular(resolved)
	if err != nil {
		return fault(err)
	}
	defer file.Close()
	if err := private("it", info); err != nil {
		return fault(err)
	}
	f, err := checksum(resolved, file, info.Size())
	if err != nil {
		return fault(err)
	}
	return &f, nil
}

// maxMapping bounds a mapping file.
const maxMapping = 1 << 20

// readMapping reads the mapping file of a library. It returns nil if there is none.
func readMapping(library string) (*Mapping, error) {
	text, err := durable.ReadRegular(library+Suffix, maxMapping)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("its mapping file %s: %w", filepath.Base(library)+Suffix, plainError(err))
	}
	m, err := Read(text)
	if err != nil {
		return nil, fmt.Errorf("its mapping file %s: %w", filepath.Base(library)+Suffix, err)
	}
	return m, nil
}

// tvmLibrary is a library for TVM FFI.
type tvmLibrary struct {
	mapping        *Mapping
	moveFromRaised uintptr // 0 if the library and those that it needs do not have it
	decRef         uintptr
}

// describeMapped makes the description of a library from its mapping.
func describeMapped(lib *loader.Library, m *Mapping) (t *tvmLibrary, d description, err error) {
	t = &tvmLibrary{mapping: m}
	t.moveFromRaised, _ = lib.Symbol(MoveFromRaised) // a function that always succeeds needs neither
	t.decRef, _ = lib.Symbol(DecRef)
	d.name, d.version = m.Name, m.Version
	if d.name == "" {
		d.name = m.Vendor
	}
	for _, f := range m.Functions {
		e := entry{op: f.Op, implID: f.ImplID, vendor: m.Vendor, kind: abi.KindVendor, priority: f.Priority}
		if e.run, err = lib.Symbol(Prefix + f.Function); err != nil {
			return nil, d, fmt.Errorf("function %s of its mapping: it exports no %s%s", f.Function, Prefix, f.Function)
		}
		for flag, set := range map[uint32]bool{abi.ThreadSafe: f.ThreadSafe, abi.Deterministic: f.Deterministic, abi.SameThread: f.SameThread} {
			if set {
				e.flags |= flag
			}
		}
		d.ops = append(d.ops, e)
	}
	return t, d, checkDescription(&d)
}

// tvmFunction is a function of a library for TVM FFI that serves an op.
type tvmFunction struct {
	library *tvmLibrary
	args    []int           // indexes of arguments of the op
	bools   map[int]bool    // those of args that are bools
	where   map[int]float64 // what arguments must be; 0 for those that the function does not get
	names   []string        // of the arguments of the op
	dtypes  []tensor.DType  // empty for all
	strided bool
}

// support returns what the function declares, nothing if b is nil.
func (b *tvmFunction) support() opregistry.Support {
	if b == nil {
		return opregistry.Support{}
	}
	return opregistry.Support{DTypes: b.dtypes}
}

// bindMapped returns the function with the index i of the mapping for an op with these arguments.
func (t *tvmLibrary) bindMapped(i int, params []opregistry.Param) (*tvmFunction, error) {
	f := t.mapping.Functions[i]
	b := &tvmFunction{library: t, bools: map[int]bool{}, where: map[int]float64{}, strided: f.Strided, dtypes: f.DTypes}
	for _, p := range params {
		b.names = append(b.names, p.Name)
	}
	find := func(name string) (int, error) {
		i := slices.IndexFunc(params, func(p opregistry.Param) bool { return p.Name == name || slices.Contains(p.Was, name) })
		if i < 0 {
			return 0, fmt.Errorf("function %s of its mapping: op %q has no argument %q; it has %s", f.Function, f.Op, name, strings.Join(b.names, ", "))
		}
		return i, nil
	}
	for name, value := range f.Where {
		i, err := find(name)
		if err != nil {
			return nil, err
		}
		if s := params[i].Sort; s != opregistry.SortInt && s != opregistry.SortFloat {
			return nil, fmt.Errorf("function %s of its mapping: where: argument %q is a %v, want a number", f.Function, name, s)
		}
		b.where[i] = value
	}
	for _, name := range f.Args {
		i, err := find(name)
		if err != nil {
			return nil, err
		}
		switch s := params[i].Sort; {
		case slices.Contains(b.args, i):
			return nil, fmt.Errorf("function %s of its mapping: it has argument %q twice", f.Function, name)
		case s != opregistry.SortTensor && s != opregistry.SortInt && s != opregistry.SortFloat:
			return nil, fmt.Errorf("function %s of its mapping: argument %q of op %q is a %v, which functions of TVM FFI are not called with here; want tensors, ints and floats", f.Function, name, f.Op, s)
		}
		b.args = append(b.args, i)
		b.bools[i] = isBool(params[i].Type)
	}
	for i, p := range params {
		if slices.Contains(b.args, i) {
			continue
		}
		if p.Sort == opregistry.SortTensor && p.Given == "" && p.Access != "read" {
			return nil, fmt.Errorf("function %s of its mapping: args have no %q, which op %q writes", f.Function, p.Name, f.Op)
		}
		if _, set := b.where[i]; !set {
			b.where[i] = 0
		}
	}
	return b, nil
}

// isBool reports whether values of a type are true or false.
func isBool(t reflect.Type) bool {
	_, option := reflect.Zero(t).Interface().(interface{ Get() (bool, bool) })
	return option || t.Kind() == reflect.Bool
}

// declines returns why the function does not serve a call, "" if it does.
func (b *tvmFunction) declines(args []abi.Arg) string {
	for i := range args {
		if want, set := b.where[i]; set && number(args[i]) != want {
			return fmt.Sprintf("its function gets no %s, want %v", b.names[i], want)
		}
	}
	for _, i := range b.args {
		if args[i].Sort != abi.ArgTensor {
			continue
		}
		t := (*abi.Tensor)(pointer(uintptr(args[i].Value)))
		is := func(d tensor.DType) bool {
			return d.DLPack() == tensor.DLDataType{Code: t.Code, Bits: t.Bits, Lanes: t.Lanes}
		}
		if len(b.dtypes) > 0 && !slices.ContainsFunc(b.dtypes, is) {
			return fmt.Sprintf("the dtype of %s is not among %v, for which its mapping has it", b.names[i], b.dtypes)
		}
		if !b.strided && !contiguous(t) {
			return fmt.Sprintf("%s is not contiguous, and its mapping does not have strided", b.names[i])
		}
	}
	return ""
}

// number returns the value of an argument, 0 if it is absent or empty, and NaN if it is something
// else.
func number(a abi.Arg) float64 {
	switch a.Sort {
	case abi.ArgAbsent:
		return 0
	case abi.ArgInt:
		return float64(int64(a.Value))
	case abi.ArgFloat:
		return math.Float64frombits(a.Value)
	case abi.ArgTensor:
		return math.NaN()
	}
	if (*abi.List)(pointer(uintptr(a.Value))).Count == 0 {
		return 0
	}
	return math.NaN()
}

// contiguous reports whether the elements of a tensor are in row-major order without gaps.
func contiguous(t *abi.Tensor) bool {
	shape := unsafe.Slice((*int64)(pointer(t.Shape)), t.NDim)
	strides := unsafe.Slice((*int64)(pointer(t.Strides)), t.NDim)
	if slices.Contains(shape, 0) {
		return true
	}
	next := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != next {
			return false
		}
		next *= shape[i]
	}
	return true
}

// callMapped calls the function on a frame. Its error belongs to the thread that raised it.
func (o *pluginOp) callMapped(f *frame) int32 {
	if reason := o.mapped.declines(f.args); reason != "" {
		return f.fail(abi.Unsupported, reason)
	}
	f.packed = resize(f.packed, len(o.mapped.args))
	for at, i := range o.mapped.args {
		f.packed[at] = pack(f.args[i], o.mapped.bools[i])
	}
	f.result, f.raised = Any{}, 0
	o.announce("run")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := int32(o.invoke(&f.guard, "run", o.entry.run, 0, address(f.packed), uintptr(len(f.packed)), uintptr(unsafe.Pointer(&f.result))))
	if status != 0 {
		return o.mapped.library.raised(f, status)
	}
	if f.result.Type >= FirstObject {
		o.mapped.library.release(&f.guard, uintptr(f.result.Value))
	}
	return abi.OK
}

// pack turns an argument into one of TVM FFI.
func pack(a abi.Arg, boolean bool) Any {
	switch {
	case a.Sort == abi.ArgTensor:
		return Any{Type: Tensor, Value: a.Value}
	case a.Sort == abi.ArgFloat:
		return Any{Type: Float, Value: a.Value}
	case a.Sort == abi.ArgInt && boolean:
		return Any{Type: Bool, Value: a.Value}
	case a.Sort == abi.ArgInt:
		return Any{Type: Int, Value: a.Value}
	}
	return Any{Type: None}
}

// notImplemented is the kind of an error with which a function declines a call.
const notImplemented = "NotImplementedError"

// raised writes the error of this thread into the frame and returns the status of the call.
func (t *tvmLibrary) raised(f *frame, status int32) int32 {
	if t.moveFromRaised == 0 {
		return f.fail(abi.Failed, fmt.Sprintf("its function returned %d, and neither it nor the libraries that it needs have %s, which would say why", status, MoveFromRaised))
	}
	f.guard.Call(t.moveFromRaised, uintptr(unsafe.Pointer(&f.raised)), 0)
	if f.raised == 0 {
		return f.fail(abi.Failed, fmt.Sprintf("its function returned %d without an error", status))
	}
	kind, message, err := readRaised(f.raised)
	if err != nil {
		return f.fail(abi.Failed, fmt.Sprintf("its function returned %d with an error that cannot be read: %v", status, err))
	}
	t.release(&f.guard, f.raised)
	if kind == notImplemented {
		return f.fail(abi.Unsupported, message)
	}
	return f.fail(abi.Failed, kind+": "+message)
}

// release gives an object back.
func (t *tvmLibrary) release(g *loader.Guard, object uintptr) {
	if t.decRef != 0 && object != 0 {
		g.Call(t.decRef, object, 0)
	}
}

// readRaised copies the kind and the message of an error object.
func readRaised(p uintptr) (kind, message string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if fault, ok := cause.(runtime.Error); ok {
			err = fault
		} else if cause != nil {
			panic(cause)
		}
	}()
	if p%8 != 0 {
		return "", "", fmt.Errorf("it is at %#x, want an address that is a multiple of 8", p)
	}
	e := (*ErrorObject)(pointer(p))
	if e.Type != Error {
		return "", "", fmt.Errorf("its type index is %d, want %d", e.Type, Error)
	}
	text := func(b Bytes) string {
		return string(unsafe.Slice((*byte)(pointer(b.Data)), min(b.Size, textBytes)))
	}
	return text(e.Kind), text(e.Message), nil
}
