package safetensors

import (
	"strings"

	"github.com/primus-fl/primus/tensor"
)

type dtypeName struct {
	name  string
	dtype tensor.DType
}

// dtypeNames pairs the names of the format with the element types of tensor.
func dtypeNames() [11]dtypeName {
	return [...]dtypeName{
		{"F64", tensor.F64},
		{"F32", tensor.F32},
		{"BF16", tensor.BF16},
		{"F16", tensor.F16},
		{"F8_E4M3", tensor.F8E4M3},
		{"F8_E5M2", tensor.F8E5M2},
		{"I64", tensor.I64},
		{"I32", tensor.I32},
		{"I16", tensor.I16},
		{"U8", tensor.U8},
		{"BOOL", tensor.Bool},
	}
}

func nameOf(d tensor.DType) string {
	for _, n := range dtypeNames() {
		if n.dtype == d {
			return n.name
		}
	}
	return ""
}

func dtypeOf(name string) (tensor.DType, bool) {
	for _, n := range dtypeNames() {
		if n.name == name {
			return n.dtype, true
		}
	}
	return tensor.Unspecified, false
}

func knownDTypes() string {
	var names []string
	for _, n := range dtypeNames() {
		names = append(names, n.name)
	}
	return strings.Join(names, ", ")
}
