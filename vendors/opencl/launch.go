package opencl

import (
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

// What a group of one work-item takes: elements enough to make a group worthwhile, about a
// microsecond of work.
const grain = 1 << 13

// vectorsEach is how many vectors a work-item of a larger group takes.
const vectorsEach = 4

// maxArgs is how many arguments a kernel may have.
const maxArgs = 72

// Launch collects the arguments of a kernel.
type Launch struct {
	call   *Call
	kernel *opencl.Kernel
	shape  Shape
	dense  bool
	err    error
	args   [maxArgs]opencl.Arg
	n      int
	groups [2]int
}

// Kernel starts a launch of a kernel. It is called when nothing can decline the call any more.
func (c *Call) Kernel(p *Program, name string, types Types, flags Flags) *Launch {
	return c.launch(p, name, types, flags, false)
}

func (c *Call) launch(p *Program, name string, types Types, flags Flags, dense bool) *Launch {
	if c.Device == nil { // no operand has elements
		return &Launch{call: c, shape: Shape{Group: 1, Width: cpuWidth}, dense: dense}
	}
	l := &Launch{call: c, shape: shapeFor(c.Device.Info()), dense: dense}
	l.kernel, l.err = p.program.Kernel(c.Device, rowsVariant{names: p.names, shape: l.shape, types: types, flags: flags, dense: dense}, name)
	return l
}

func (l *Launch) add(a ...opencl.Arg) *Launch {
	l.n += copy(l.args[l.n:], a)
	return l
}

// Vec adds operands that VEC or OUT declares.
func (l *Launch) Vec(tensors ...*tensor.Tensor) *Launch {
	for _, t := range tensors {
		l.add(memory(t))
	}
	return l
}

// memory is a tensor as an argument, a null pointer without one.
func memory(t *tensor.Tensor) opencl.Arg {
	if t == nil {
		return opencl.Buf(nil)
	}
	return Buf(t)
}

// Mat adds operands that MAT declares.
func (l *Launch) Mat(operands ...Rows) *Launch {
	for _, r := range operands {
		l.add(memory(r.Tensor), opencl.U64(uint64(r.Pitch)), opencl.U32(uint32(max(r.Block, 1))), opencl.U64(uint64(r.Jump)))
	}
	return l
}

// U32 adds numbers of type uint.
func (l *Launch) U32(values ...int) *Launch {
	for _, v := range values {
		l.add(opencl.U32(uint32(v)))
	}
	return l
}

// U64 adds numbers of type ulong or long.
func (l *Launch) U64(values ...uint64) *Launch {
	for _, v := range values {
		l.add(opencl.U64(v))
	}
	return l
}

// F32 adds numbers of type float.
func (l *Launch) F32(values ...float32) *Launch {
	for _, v := range values {
		l.add(opencl.F32(v))
	}
	return l
}

// I32 adds numbers of type int.
func (l *Launch) I32(values ...int32) *Launch {
	for _, v := range values {
		l.add(opencl.I32(v))
	}
	return l
}

// Bool adds numbers of type int, 1 for true.
func (l *Launch) Bool(values ...bool) *Launch {
	for _, v := range values {
		if v {
			l.I32(1)
		} else {
			l.I32(0)
		}
	}
	return l
}

// Each starts a launch of a kernel that goes through all vectors of operands with EACH, and adds
// the operands. Those of rows × cols elements have one row where all are dense.
func (c *Call) Each(p *Program, name string, types Types, flags Flags, rows, cols int, operands ...Rows) *Launch {
	dense := true
	for _, r := range operands {
		dense = dense && r.IsContiguous() && r.Cols == cols
	}
	l := c.launch(p, name, types, flags, dense)
	return l.Mat(operands...).size(rows, cols)
}

// Dense starts a launch of a kernel that goes through all elements of dense operands with EACH.
func (c *Call) Dense(p *Program, name string, types Types, flags Flags, operands ...*tensor.Tensor) *Launch {
	return c.launch(p, name, types, flags, true).Vec(operands...)
}

// Size adds EACH_ARGS for n elements of dense operands.
func (l *Launch) Size(n int) *Launch { return l.size(1, n) }

func (l *Launch) size(rows, cols int) *Launch {
	items, per := rows, max(grain/max(cols, 1), 1)
	if l.dense || l.shape.Group > 1 {
		line := CeilDiv(cols, l.shape.Width)
		if l.dense {
			line, rows, cols = CeilDiv(rows*cols, l.shape.Width), 1, rows*cols
		}
		items, per = rows*line, l.shape.vectors()
	}
	l.groups = [2]int{CeilDiv(items, per), 1}
	l.U32(rows)
	if l.dense {
		l.U64(uint64(cols))
	} else {
		l.U32(cols)
	}
	return l.U32(per)
}

// Groups returns how many groups Size makes.
func (c *Call) Groups(n int) int {
	s := shapeFor(c.Device.Info())
	return CeilDiv(CeilDiv(n, s.Width), s.vectors())
}

// vectors is how many vectors a group takes.
func (s Shape) vectors() int {
	if s.Group == 1 {
		return grain / s.Width
	}
	return s.Group * vectorsEach
}

// Rows adds the arguments rows, cols and per of a kernel that goes through rows with GROUP_ROWS.
func (l *Launch) Rows(rows, cols int) *Launch {
	per := 1
	if l.shape.Group == 1 {
		per = max(grain/max(cols, 1), 1)
	}
	return l.rows(rows, cols, per)
}

func (l *Launch) rows(rows, cols, per int) *Launch {
	l.groups = [2]int{CeilDiv(rows, per), 1}
	return l.U32(rows, cols, per)
}

// Items adds the arguments n and per of a kernel that goes through n items with ITEMS; size is how
// many elements an item has.
func (l *Launch) Items(n, size int) *Launch {
	per := l.shape.Group
	if per == 1 {
		per = max(grain/max(size, 1), 1)
	}
	l.groups = [2]int{CeilDiv(n, per), 1}
	return l.U32(per)
}

// Run queues the kernel.
func (l *Launch) Run() error {
	if l.err != nil || l.kernel == nil || l.groups[0]*l.groups[1] == 0 {
		return l.err
	}
	return l.kernel.Launch(l.call.exec.Stream(), []int{l.groups[0] * l.shape.Group, l.groups[1]}, []int{l.shape.Group, 1}, l.args[:l.n]...)
}

// RunGroups queues the kernel in this many groups.
func (l *Launch) RunGroups(x, y int) error {
	l.groups = [2]int{x, y}
	return l.Run()
}

// CeilDiv returns a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Across returns how many groups take a vector of each of so many columns once.
func (l *Launch) Across(cols int) int {
	if l.shape.Group == 1 {
		return 1
	}
	return CeilDiv(cols, l.shape.Group*l.shape.Width)
}

// Group returns how many work-items a group has.
func (l *Launch) Group() int { return l.shape.Group }

// Width returns how many elements a vector has.
func (l *Launch) Width() int { return l.shape.Width }

// Alone is Items for a kernel that a single work-item of a CPU runs alone.
func (l *Launch) Alone(n int) *Launch {
	if l.shape.Group == 1 {
		l.groups = [2]int{1, 1}
		return l.U32(n)
	}
	return l.Items(n, 1)
}
