package tensor

import (
	"fmt"
	"strings"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. The zero DType is unspecified and belongs to no tensor.
const (
	Unspecified DType = iota
	F64               // IEEE 754 binary64
	F32               // IEEE 754 binary32
	BF16              // bfloat16: the upper half of a binary32
	F16               // IEEE 754 binary16
	F8E4M3            // OCP FP8 E4M3: no infinities, one NaN pattern per sign, max 448
	F8E5M2            // OCP FP8 E5M2: IEEE-like, max 57344
	I64               // two's complement, 64 bits
	I32               // two's complement, 32 bits
	I16               // two's complement, 16 bits
	U8                // unsigned, 8 bits
	Bool              // one byte, 0 or 1
	dtypeEnd
)

// These are the type codes of DLPack's DLDataTypeCode.
const (
	dlInt    = 0
	dlUInt   = 1
	dlFloat  = 2
	dlBfloat = 4
	dlBool   = 6
	dlE4M3FN = 10
	dlE5M2   = 12
)

type dtypeInfo struct {
	name   string
	size   int
	float  bool
	dlCode uint8
}

var dtypes = [dtypeEnd]dtypeInfo{
	Unspecified: {name: "unspecified"},
	F64:         {"f64", 8, true, dlFloat},
	F32:         {"f32", 4, true, dlFloat},
	BF16:        {"bf16", 2, true, dlBfloat},
	F16:         {"f16", 2, true, dlFloat},
	F8E4M3:      {"f8e4m3", 1, true, dlE4M3FN},
	F8E5M2:      {"f8e5m2", 1, true, dlE5M2},
	I64:         {"i64", 8, false, dlInt},
	I32:         {"i32", 4, false, dlInt},
	I16:         {"i16", 2, false, dlInt},
	U8:          {"u8", 1, false, dlUInt},
	Bool:        {"bool", 1, false, dlBool},
}

// DTypes returns all element types in the order of their constants.
func DTypes() []DType {
	all := make([]DType, 0, int(dtypeEnd)-1)
	for d := Unspecified + 1; d < dtypeEnd; d++ {
		all = append(all, d)
	}
	return all
}

// Valid reports whether d is one of the element types.
func (d DType) Valid() bool { return d > Unspecified && d < dtypeEnd }

// Size returns the size of one element in bytes, 0 for an invalid type.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// IsFloat reports whether d is one of the floating-point types.
func (d DType) IsFloat() bool { return d.Valid() && dtypes[d].float }

// String returns the short name of the type, such as "bf16".
func (d DType) String() string {
	if d >= dtypeEnd {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType returns the element type with this short name, in any case.
func ParseDType(s string) (DType, error) {
	for _, d := range DTypes() {
		if strings.EqualFold(s, dtypes[d].name) {
			return d, nil
		}
	}
	names := make([]string, 0, int(dtypeEnd)-1)
	for _, d := range DTypes() {
		names = append(names, d.String())
	}
	return Unspecified, &Error{Func: "ParseDType", Got: fmt.Sprintf("%q", s), Want: "one of " + strings.Join(names, ", ")}
}

// MarshalText returns the short name; an invalid type is an error.
func (d DType) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, &Error{Func: "DType.MarshalText", Got: d.String(), Want: "a valid dtype"}
	}
	return []byte(d.String()), nil
}

// UnmarshalText accepts what ParseDType accepts.
func (d *DType) UnmarshalText(text []byte) error {
	parsed, err := ParseDType(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// The Go types of elements that have no native Go type. Each holds the bit pattern of one element.
type (
	BFloat16   uint16
	Float16    uint16
	Float8E4M3 uint8
	Float8E5M2 uint8
)

// Element lists the Go types of the element types.
type Element interface {
	float64 | float32 | BFloat16 | Float16 | Float8E4M3 | Float8E5M2 | int64 | int32 | int16 | uint8 | bool
}

// DTypeOf returns the element type whose Go type is T.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float64:
		return F64
	case float32:
		return F32
	case BFloat16:
		return BF16
	case Float16:
		return F16
	case Float8E4M3:
		return F8E4M3
	case Float8E5M2:
		return F8E5M2
	case int64:
		return I64
	case int32:
		return I32
	case int16:
		return I16
	case uint8:
		return U8
	default:
		return Bool
	}
}
