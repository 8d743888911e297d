package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"github.com/primus-fl/primus/tensor"
)

// Suffix is what the name of a mapping file has after that of its library.
const Suffix = ".tvm_ffi.json"

// Prefix is what the symbol of a function has before its name.
const Prefix = "__tvm_ffi_"

// Mapping says which functions of a library serve which ops.
type Mapping struct {
	Name      string     `json:"name"`
	Version   string     `json:"version"`
	Vendor    string     `json:"vendor"`
	Functions []Function `json:"functions"`
}

// Function is a function that serves an op.
type Function struct {
	Function string `json:"function"` // without Prefix
	Op       string `json:"op"`
	ImplID   string `json:"impl_id"` // "" is vendor. and the vendor
	Priority int    `json:"priority"`

	// Args are the names of the arguments of the op that the function takes, in its order. A call in
	// which another argument is given, or is a number other than 0, is declined, unless Where has it.
	Args []string `json:"args"`
	// Where are numbers that arguments must have; calls with others are declined.
	Where map[string]float64 `json:"where"`
	// DTypes are those that the tensors of a call may have; empty for all that the op has.
	DTypes []tensor.DType `json:"dtypes"`
	// Strided says that the function reads the strides of tensors. Without it, calls with tensors that
	// are not contiguous are declined.
	Strided bool `json:"strided"`

	ThreadSafe    bool `json:"thread_safe"`
	SameThread    bool `json:"same_thread"`
	Deterministic bool `json:"deterministic"`
}

// MaxBytes is more than any mapping has.
const MaxBytes = 1 << 20

// plain returns an error of package json in words.
func plain(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut off")
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if at.Field == "" {
			return fmt.Errorf("given %s, want an object in braces", at.Value)
		}
		return fmt.Errorf("%q: given %s, want %s", at.Field, at.Value, sortOf(at.Type.Kind()))
	}
	return err
}

func sortOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list in brackets"
	case reflect.Struct, reflect.Map:
		return "an object in braces"
	default:
		return "a number"
	}
}

var symbol = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Read reads a Mapping.
func Read(text []byte) (*Mapping, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	m := &Mapping{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, plain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has text after the mapping")
	}
	if m.Vendor == "" || len(m.Functions) == 0 {
		return nil, errors.New(`want "vendor" and at least one function in "functions"`)
	}
	for i := range m.Functions {
		f := &m.Functions[i]
		if !symbol.MatchString(f.Function) || f.Op == "" || len(f.Args) == 0 {
			return nil, fmt.Errorf(`functions[%d]: given function %q, op %q and %d args, want the name of a function without %s, an op such as residual_add and its arguments`, i, f.Function, f.Op, len(f.Args), Prefix)
		}
		if f.ImplID == "" {
			f.ImplID = "vendor." + m.Vendor
		}
	}
	return m, nil
}
