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

// kernelLaunch collects the arguments of a kernel.
type kernelLaunch struct {
	call   *kernelCall
	kernel *opencl.Kernel
	shape  partition
	dense  bool
	err    error
	args   [maxArgs]opencl.Arg
	n      int
	groups [2]int
}

// kernel starts a launch of a kernel. It is called when nothing can decline the call any more.
func (c *kernelCall) kernel(p *rowsProgram, name string, types typeList, flags macroFlags) *kernelLaunch {
	return c.launch(p, name, types, flags, false)
}

func (c *kernelCall) launch(p *rowsProgram, name string, types typeList, flags macroFlags, dense bool) *kernelLaunch {
	if c.Device == nil { // no operand has elements
		return &kernelLaunch{call: c, shape: partition{Group: 1, Width: cpuWidth}, dense: dense}
	}
	l := &kernelLaunch{call: c, shape: shapeFor(c.Device.Info()), dense: dense}
	l.kernel, l.err = p.program.Kernel(c.Device, rowsVariant{names: p.names, shape: l.shape, types: types, flags: flags, dense: dense}, name)
	return l
}

func (l *kernelLaunch) add(a ...opencl.Arg) *kernelLaunch {
	l.n += copy(l.args[l.n:], a)
	return l
}

// vec adds operands that VEC or OUT declares.
func (l *kernelLaunch) vec(tensors ...*tensor.Tensor) *kernelLaunch {
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
	return buf(t)
}

// mat adds operands that MAT declares.
func (l *kernelLaunch) mat(operands ...rowView) *kernelLaunch {
	for _, r := range operands {
		l.add(memory(r.Tensor), opencl.U64(uint64(r.Pitch)), opencl.U32(uint32(max(r.Block, 1))), opencl.U64(uint64(r.Jump)))
	}
	return l
}

// u32 adds numbers of type uint.
func (l *kernelLaunch) u32(values ...int) *kernelLaunch {
	for _, v := range values {
		l.add(opencl.U32(uint32(v)))
	}
	return l
}

// u64 adds numbers of type ulong or long.
func (l *kernelLaunch) u64(values ...uint64) *kernelLaunch {
	for _, v := range values {
		l.add(opencl.U64(v))
	}
	return l
}

// f32 adds numbers of type float.
func (l *kernelLaunch) f32(values ...float32) *kernelLaunch {
	for _, v := range values {
		l.add(opencl.F32(v))
	}
	return l
}

// i32 adds numbers of type int.
func (l *kernelLaunch) i32(values ...int32) *kernelLaunch {
	for _, v := range values {
		l.add(opencl.I32(v))
	}
	return l
}

// bool adds numbers of type int, 1 for true.
func (l *kernelLaunch) bool(values ...bool) *kernelLaunch {
	for _, v := range values {
		if v {
			l.i32(1)
		} else {
			l.i32(0)
		}
	}
	return l
}

// each starts a launch of a kernel that goes through all vectors of operands with EACH, and adds
// the operands. Those of rows × cols elements have one row where all are dense.
func (c *kernelCall) each(p *rowsProgram, name string, types typeList, flags macroFlags, rows, cols int, operands ...rowView) *kernelLaunch {
	dense := true
	for _, r := range operands {
		dense = dense && r.IsContiguous() && r.Cols == cols
	}
	l := c.launch(p, name, types, flags, dense)
	return l.mat(operands...).size(rows, cols)
}

// dense starts a launch of a kernel that goes through all elements of dense operands with EACH.
func (c *kernelCall) dense(p *rowsProgram, name string, types typeList, flags macroFlags, operands ...*tensor.Tensor) *kernelLaunch {
	return c.launch(p, name, types, flags, true).vec(operands...)
}

// elements adds EACH_ARGS for n elements of dense operands.
func (l *kernelLaunch) elements(n int) *kernelLaunch { return l.size(1, n) }

func (l *kernelLaunch) size(rows, cols int) *kernelLaunch {
	items, per := rows, max(grain/max(cols, 1), 1)
	if l.dense || l.shape.Group > 1 {
		line := ceilDiv(cols, l.shape.Width)
		if l.dense {
			line, rows, cols = ceilDiv(rows*cols, l.shape.Width), 1, rows*cols
		}
		items, per = rows*line, l.shape.vectors()
	}
	l.groups = [2]int{ceilDiv(items, per), 1}
	l.u32(rows)
	if l.dense {
		l.u64(uint64(cols))
	} else {
		l.u32(cols)
	}
	return l.u32(per)
}

// groups returns how many groups elements makes.
func (c *kernelCall) groups(n int) int {
	s := shapeFor(c.Device.Info())
	return ceilDiv(ceilDiv(n, s.Width), s.vectors())
}

// vectors is how many vectors a group takes.
func (s partition) vectors() int {
	if s.Group == 1 {
		return grain / s.Width
	}
	return s.Group * vectorsEach
}

// groupRows adds the arguments rows, cols and per of a kernel that goes through rows with
// GROUP_ROWS.
func (l *kernelLaunch) groupRows(rows, cols int) *kernelLaunch {
	per := 1
	if l.shape.Group == 1 {
		per = max(grain/max(cols, 1), 1)
	}
	return l.rows(rows, cols, per)
}

func (l *kernelLaunch) rows(rows, cols, per int) *kernelLaunch {
	l.groups = [2]int{ceilDiv(rows, per), 1}
	return l.u32(rows, cols, per)
}

// items adds the arguments n and per of a kernel that goes through n items with ITEMS; size is how
// many elements an item has.
func (l *kernelLaunch) items(n, size int) *kernelLaunch {
	per := l.shape.Group
	if per == 1 {
		per = max(grain/max(size, 1), 1)
	}
	l.groups = [2]int{ceilDiv(n, per), 1}
	return l.u32(per)
}

// Run queues the kernel.
func (l *kernelLaunch) Run() error {
	if l.err != nil || l.kernel == nil || l.groups[0]*l.groups[1] == 0 {
		return l.err
	}
	return l.kernel.Launch(l.call.exec.Stream(), []int{l.groups[0] * l.shape.Group, l.groups[1]}, []int{l.shape.Group, 1}, l.args[:l.n]...)
}

// runGroups queues the kernel in this many groups.
func (l *kernelLaunch) runGroups(x, y int) error {
	l.groups = [2]int{x, y}
	return l.Run()
}

// ceilDiv returns a/b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }

// across returns how many groups take a vector of each of so many columns once.
func (l *kernelLaunch) across(cols int) int {
	if l.shape.Group == 1 {
		return 1
	}
	return ceilDiv(cols, l.shape.Group*l.shape.Width)
}

// groupSize returns how many work-items a group has.
func (l *kernelLaunch) groupSize() int { return l.shape.Group }

// width returns how many elements a vector has.
func (l *kernelLaunch) width() int { return l.shape.Width }

// alone is Items for a kernel that a single work-item of a CPU runs alone.
func (l *kernelLaunch) alone(n int) *kernelLaunch {
	if l.shape.Group == 1 {
		l.groups = [2]int{1, 1}
		return l.u32(n)
	}
	return l.items(n, 1)
}
