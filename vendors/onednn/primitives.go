package onednn

import (
	"fmt"

	"github.com/primus-fl/primus/vendors/loader"
)

// primitives is the part of oneDNN's C API that creates and runs primitives, with the engine and
// the attributes that all of them share. It is the API of version 2, in which the caller owns the
// structs of descriptors.
type primitives struct {
	engine, attributes uintptr

	createEngine     func(engine *uintptr, kind int32, index uintptr) int32
	createStream     func(stream *uintptr, engine uintptr, flags uint32) int32
	createAttributes func(attributes *uintptr) int32
	setScratchpad    func(attributes uintptr, mode int32) int32

	describe     func(m *memoryDesc, axes int32, sizes *axes, dtype int32, strides *axes) int32
	normForward  func(op *opDesc, prop int32, data, stat *memoryDesc, eps float32, flags uint32) int32
	normBackward func(op *opDesc, prop int32, diff, data, stat *memoryDesc, eps float32, flags uint32) int32

	softmaxForward  func(op *opDesc, prop int32, data *memoryDesc, axis int32) int32
	softmaxBackward func(op *opDesc, diff, data *memoryDesc, axis int32) int32

	createDesc    func(desc *uintptr, op *opDesc, attributes, engine, forward uintptr) int32
	destroyDesc   func(desc uintptr) int32
	queryMemory   func(desc uintptr, what, index int32) *memoryDesc
	create        func(primitive *uintptr, desc uintptr) int32
	destroy       func(primitive uintptr) int32
	createMemory  func(memory *uintptr, m *memoryDesc, engine, data uintptr) int32
	destroyMemory func(memory uintptr) int32

	setData, execute, wait uintptr // addresses: these run in every call
}

// memoryDesc and opDesc are large enough for dnnl_memory_desc_t and for the descriptor of any
// operation; the largest of those in use has 3496 bytes.
type (
	memoryDesc [128]uint64
	opDesc     [1024]uint64
)

// axes is dnnl_dims_t.
type axes [12]int64

// Values of enumerations and flags in dnnl_types.h.
const (
	engineCPU        = 1
	streamInOrder    = 1
	scratchpadOfUser = 1
	queryScratchpad  = 136
	forwardTraining  = 64
	backward         = 128
	useScale         = 8
	useShift         = 16
	typeBF16         = 2
	typeF32          = 3
)

// primitivesMajor is the version of oneDNN whose C API this package uses.
const primitivesMajor = 2

// bindPrimitives returns the functions, with an engine, or why they cannot be used in a library of
// this version.
func bindPrimitives(lib *loader.Library, major int32) (*primitives, error) {
	if major != primitivesMajor {
		return nil, fmt.Errorf("%s: given the C API of oneDNN %d, which has no descriptors for the caller, want that of %d", lib.Path(), major, primitivesMajor)
	}
	p := &primitives{}
	for _, f := range []struct {
		name string
		into any
	}{
		{"dnnl_engine_create", &p.createEngine},
		{"dnnl_stream_create", &p.createStream},
		{"dnnl_primitive_attr_create", &p.createAttributes},
		{"dnnl_primitive_attr_set_scratchpad_mode", &p.setScratchpad},
		{"dnnl_memory_desc_init_by_strides", &p.describe},
		{"dnnl_layer_normalization_forward_desc_init", &p.normForward},
		{"dnnl_layer_normalization_backward_desc_init", &p.normBackward},
		{"dnnl_softmax_forward_desc_init", &p.softmaxForward},
		{"dnnl_softmax_backward_desc_init", &p.softmaxBackward},
		{"dnnl_primitive_desc_create", &p.createDesc},
		{"dnnl_primitive_desc_destroy", &p.destroyDesc},
		{"dnnl_primitive_desc_query_md", &p.queryMemory},
		{"dnnl_primitive_create", &p.create},
		{"dnnl_primitive_destroy", &p.destroy},
		{"dnnl_memory_create", &p.createMemory},
		{"dnnl_memory_destroy", &p.destroyMemory},
		{"dnnl_memory_set_data_handle", &p.setData},
		{"dnnl_primitive_execute", &p.execute},
		{"dnnl_stream_wait", &p.wait},
	} {
		if err := bind(lib, f.into, f.name); err != nil {
			return nil, err
		}
	}
	if err := succeeded("dnnl_engine_create", p.createEngine(&p.engine, engineCPU, 0)); err != nil {
		return nil, err
	}
	if err := succeeded("dnnl_primitive_attr_create", p.createAttributes(&p.attributes)); err != nil {
		return nil, err
	}
	// By default threads share a scratchpad that belongs to the library.
	if err := succeeded("dnnl_primitive_attr_set_scratchpad_mode", p.setScratchpad(p.attributes, scratchpadOfUser)); err != nil {
		return nil, err
	}
	return p, nil
}

// bind sets the address or the function that into points to.
func bind(lib *loader.Library, into any, name string) error {
	addr, ok := into.(*uintptr)
	if !ok {
		return lib.Bind(into, name)
	}
	var err error
	*addr, err = lib.Symbol(name)
	return err
}

// succeeded returns the error of a status of oneDNN.
func succeeded(function string, status int32) error {
	if status == 0 {
		return nil
	}
	return fmt.Errorf("onednn: %s: given status %d, want 0", function, status)
}
