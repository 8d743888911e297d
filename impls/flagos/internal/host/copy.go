package host

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// CopyAxes is how many axes a copy can have that do not merge with others.
const CopyAxes = 8

// Copy copies elements of any dtype between two tensors, along axes that need not be dense in
// either. Without a source it clears the elements.
type Copy struct {
	Cut
	to, from         []byte
	axes             int
	length           [CopyAxes]int
	toStep, fromStep [CopyAxes]int // in bytes
	size             int           // bytes of an element, and of a run once the copy runs
	empty            bool
}

var copyKernel = parallel.NewKernel((*Copy).part)

// Copy requires host memory and returns a copy of the first elements. The source may be nil.
func (v *Views) Copy(toName string, to *tensor.Tensor, fromName string, from *tensor.Tensor) Copy {
	if !v.OnHost(toName, to) || from != nil && !v.OnHost(fromName, from) {
		return Copy{}
	}
	c := Copy{to: rawOf(to), size: to.DType().Size()}
	if from != nil {
		c.from = rawOf(from)
	}
	return c
}

// rawOf returns the memory of a tensor from its first element to its last one.
func rawOf(t *tensor.Tensor) []byte {
	if t.NumElements() == 0 {
		return []byte{}
	}
	n := 1
	for axis, length := range t.Shape() {
		n += (length - 1) * t.Strides()[axis]
	}
	return unsafe.Slice((*byte)(t.Pointer()), n*t.DType().Size())
}

// At returns the copy that begins at other elements, by their distance from the first ones.
func (c Copy) At(to, from int) Copy {
	c.to = c.to[min(to*c.size, len(c.to)):]
	if c.from != nil {
		c.from = c.from[min(from*c.size, len(c.from)):]
	}
	return c
}

// Along returns the copy of n such elements, or groups of elements, at these distances. The first
// axis is the outermost one.
func (c Copy) Along(n, toStep, fromStep int) Copy {
	toStep, fromStep = toStep*c.size, fromStep*c.size
	if c.from == nil {
		fromStep = toStep
	}
	last := c.axes - 1
	switch {
	case n == 0:
		c.empty = true
	case n == 1:
	case last >= 0 && c.toStep[last] == n*toStep && c.fromStep[last] == n*fromStep:
		c.length[last] *= n
		c.toStep[last], c.fromStep[last] = toStep, fromStep
	case c.axes == CopyAxes:
		panic("BUG: flagos: a copy along more axes than any op has")
	default:
		c.length[c.axes], c.toStep[c.axes], c.fromStep[c.axes] = n, toStep, fromStep
		c.axes++
	}
	return c
}

// Run copies the elements.
func (c Copy) Run(e *opregistry.Exec) {
	if c.empty {
		return
	}
	elements := 1
	if last := c.axes - 1; last >= 0 && c.toStep[last] == c.size && c.fromStep[last] == c.size {
		elements = c.length[last]
		c.size *= elements
		c.axes--
	}
	runs := 1
	for _, n := range c.length[:c.axes] {
		runs *= n
	}
	c.Cut = CutItems(runs, elements)
	copyKernel.Run(e.Pool(), c.Parts, c)
}

func (c *Copy) part(part int) {
	lo, hi := c.Bounds(part)
	var index [CopyAxes]int
	to, from := 0, 0
	for i, axis := lo, c.axes-1; axis >= 0; axis-- {
		index[axis] = i % c.length[axis]
		i /= c.length[axis]
		to += index[axis] * c.toStep[axis]
		from += index[axis] * c.fromStep[axis]
	}
	for range hi - lo {
		if c.from == nil {
			clear(c.to[to:][:c.size])
		} else {
			copy(c.to[to:][:c.size], c.from[from:])
		}
		for axis := c.axes - 1; axis >= 0; axis-- {
			to += c.toStep[axis]
			from += c.fromStep[axis]
			if index[axis]++; index[axis] < c.length[axis] {
				break
			}
			index[axis] = 0
			to -= c.length[axis] * c.toStep[axis]
			from -= c.length[axis] * c.fromStep[axis]
		}
	}
}
