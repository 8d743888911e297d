package parallel

import (
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// Kernel is a function over the parts of a task that takes its arguments by value. It reuses the
// memory that carries them to the workers, so that a call allocates nothing in a steady state.
// NewKernel makes one; it is safe for concurrent use.
type Kernel[A any] struct {
	do    func(a *A, part int)
	boxes sync.Pool
}

type box[A any] struct {
	kernel *Kernel[A]
	args   A
}

// NewKernel returns a Kernel that runs do. do must not keep a after it returns.
func NewKernel[A any](do func(a *A, part int)) *Kernel[A] {
	k := &Kernel[A]{do: do}
	k.boxes.New = func() any { return &box[A]{kernel: k} }
	return k
}

// Run calls the kernel's function for each part in [0, parts) on the pool. It keeps nothing of args
// after it returns, and panics as the pool does.
func (k *Kernel[A]) Run(pool opregistry.Pool, parts int, args A) {
	b := k.boxes.Get().(*box[A])
	b.args = args
	pool.Run(parts, b)
	var zero A
	b.args = zero
	k.boxes.Put(b)
}

// Do runs one part.
func (b *box[A]) Do(part int) { b.kernel.do(&b.args, part) }

// Split returns the bounds of part i of n items cut into parts of nearly equal size: the sizes
// differ by one at most. The product of parts and n must fit in an int.
func Split(n, parts, i int) (lo, hi int) {
	return i * n / parts, (i + 1) * n / parts
}
