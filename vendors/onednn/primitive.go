package onednn

import (
	"slices"

	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/tensor"
)

// kind is what a primitive computes.
type kind int

const (
	normForward kind = iota
	normBackward
	softmaxBackward
)

// spec says what a primitive computes and for which shape; there is one primitive per spec.
type spec struct {
	kind       kind
	dtype      tensor.DType
	rows, cols int
	eps        float32 // of a norm
}

// maxOperands is the largest number of operands of a primitive.
const maxOperands = 9

// The indices of operands in dnnl_types.h.
const (
	argX          = 1
	argY          = 17
	argMean       = 49
	argVariance   = 50
	argScale      = 51
	argShift      = 52
	argScratchpad = 80
	argDX         = 129
	argDY         = 145
	argDScale     = 255
	argDShift     = 256
)

// form is the shape and dtype of an operand.
type form int

const (
	matrix    form = iota // [rows, cols] of the dtype
	perRow                // [rows] of f32
	perColumn             // [cols] of f32
)

type operand struct {
	index int32
	form  form
}

// operands returns the operands of a call in the order in which execute takes them.
func (s *spec) operands() []operand {
	norm := []operand{{argX, matrix}, {argMean, perRow}, {argVariance, perRow}, {argScale, perColumn}, {argShift, perColumn}}
	gradient := []operand{{argDY, matrix}, {argDX, matrix}}
	switch s.kind {
	case normForward:
		return append(norm, operand{argY, matrix})
	case normBackward:
		return slices.Concat(norm, gradient, []operand{{argDScale, perColumn}, {argDShift, perColumn}})
	default:
		return append(gradient, operand{argY, matrix})
	}
}

// argument is dnnl_exec_arg_t.
type argument struct {
	index  int32
	_      int32
	memory uintptr
}

// primitive is a primitive of oneDNN with a memory object for each operand.
type primitive struct {
	handle   uintptr
	args     []argument // the operands, then the scratchpad
	operands int
	used     int // the lane's clock at the last use
}

func newPrimitive(p *primitives, s spec) (*primitive, error) {
	b := builder{primitives: p, spec: s, made: &primitive{}}
	b.make()
	if b.err != nil {
		b.made.release(p)
		return nil, b.err
	}
	return b.made, nil
}

// release frees what the primitive holds, which may be incomplete.
func (p *primitive) release(api *primitives) {
	for _, a := range p.args {
		api.destroyMemory(a.memory)
	}
	if p.handle != 0 {
		api.destroy(p.handle)
	}
}

// builder creates a primitive; after an error its methods do nothing.
type builder struct {
	*primitives
	spec  spec
	forms [3]*memoryDesc
	made  *primitive
	err   error
}

func (b *builder) do(function string, call func() int32) bool {
	if b.err == nil {
		b.err = succeeded(function, call())
	}
	return b.err == nil
}

func (b *builder) make() {
	dtype := int32(typeF32)
	if b.spec.dtype == tensor.BF16 {
		dtype = typeBF16
	}
	rows, cols := int64(b.spec.rows), int64(b.spec.cols)
	b.forms = [...]*memoryDesc{
		matrix:    b.describeDense(dtype, rows, cols),
		perRow:    b.describeDense(typeF32, rows),
		perColumn: b.describeDense(typeF32, cols),
	}
	forward, gradient := b.describeOp()
	desc := b.desc(0, forward)
	defer b.destroyDesc(desc)
	if gradient != nil {
		desc = b.desc(desc, gradient)
		defer b.destroyDesc(desc)
	}
	if !b.do("dnnl_primitive_create", func() int32 { return b.create(&b.made.handle, desc) }) {
		return
	}
	for _, o := range b.spec.operands() {
		b.memory(o.index, b.forms[o.form], 0)
	}
	b.made.operands = len(b.made.args)
	const allocate = ^uintptr(0) // DNNL_MEMORY_ALLOCATE
	b.memory(argScratchpad, b.queryMemory(desc, queryScratchpad, 0), allocate)
}

// describeDense describes contiguous memory.
func (b *builder) describeDense(dtype int32, sizes ...int64) *memoryDesc {
	m, n, strides := &memoryDesc{}, &axes{}, &axes{}
	copy(n[:], sizes)
	step := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = step
		step *= sizes[i]
	}
	b.do("dnnl_memory_desc_init_by_strides", func() int32 { return b.describe(m, int32(len(sizes)), n, dtype, strides) })
	return m
}

// describeOp returns the functions that describe the forward operation, and its gradient if the
// spec asks for one.
func (b *builder) describeOp() (forward, gradient func(op *opDesc) int32) {
	m, stat, eps := b.forms[matrix], b.forms[perRow], b.spec.eps
	const flags, axis = useScale | useShift, 1
	if b.spec.kind == softmaxBackward {
		return func(op *opDesc) int32 { return b.softmaxForward(op, forwardTraining, m, axis) },
			func(op *opDesc) int32 { return b.softmaxBackward(op, m, m, axis) }
	}
	forward = func(op *opDesc) int32 { return b.normForward(op, forwardTraining, m, stat, eps, flags) }
	if b.spec.kind == normBackward {
		gradient = func(op *opDesc) int32 { return b.normBackward(op, backward, m, m, stat, eps, flags) }
	}
	return forward, gradient
}

// desc creates a primitive descriptor from what describe fills in; forward is the descriptor of the
// forward primitive, or 0 for none.
func (b *builder) desc(forward uintptr, describe func(op *opDesc) int32) uintptr {
	op, desc := &opDesc{}, uintptr(0)
	b.do("dnnl_desc_init", func() int32 { return describe(op) })
	b.do("dnnl_primitive_desc_create", func() int32 { return b.createDesc(&desc, op, b.attributes, b.engine, forward) })
	return desc
}

// memory adds an argument.
func (b *builder) memory(index int32, m *memoryDesc, data uintptr) {
	a := argument{index: index}
	if b.do("dnnl_memory_create", func() int32 { return b.createMemory(&a.memory, m, b.engine, data) }) {
		b.made.args = append(b.made.args, a)
	}
}

// annotate tells the race detector what the library, which it cannot see, is about to read and
// write.
func annotate(read, written []*tensor.Tensor) {
	if !race.Enabled {
		return
	}
	for _, t := range read {
		race.ReadMemory(t.Pointer(), t.DType().Size()*t.NumElements())
	}
	for _, t := range written {
		if t != nil {
			race.WriteMemory(t.Pointer(), t.DType().Size()*t.NumElements())
		}
	}
}
