package argcopy

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Buffers lends host memory for copies. The zero Buffers is ready to use, by any number of
// goroutines. It keeps what was lent at the same time, at most.
type Buffers struct {
	mu   sync.Mutex
	free [bits.UintSize][][]uint64 // by the power of two of the capacity
}

func (b *Buffers) lend(size int) []uint64 {
	words := max(1, (size+7)/8)
	class := bits.Len(uint(words - 1))
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free[class]); n > 0 {
		buf := b.free[class][n-1]
		b.free[class] = b.free[class][:n-1]
		return buf[:words]
	}
	return make([]uint64, words, 1<<class)
}

func (b *Buffers) release(buf []uint64) {
	class := bits.Len(uint(cap(buf) - 1))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free[class] = append(b.free[class], buf[:0])
}

// Host is a call whose operands on devices have copies on the host in their place. The other
// operands, and the record of the family, are those of the call.
type Host struct {
	Call opregistry.Call
	// In and Out are the bytes that were copied to the host and back.
	In, Out int

	buffers *Buffers
	lent    [][]uint64
	written []writtenOperand
}

type writtenOperand struct {
	name     string
	from, to *tensor.Tensor // to is on the device
}

// ToHost copies the operands of a call that lie on devices to the host, those with content that the
// op reads. The caller calls Release.
func ToHost(a opregistry.Call, buffers *Buffers) (*Host, error) {
	h := &Host{buffers: buffers}
	operands := a.Operands()
	toHost := once(func(t *tensor.Tensor) (*tensor.Tensor, error) { return h.tensor(t, operands) })
	c := copier{keepSaved: true, tensor: func(t *tensor.Tensor) (*tensor.Tensor, error) {
		if t.OnHost() {
			return t, nil
		}
		return toHost(t)
	}}
	clone, args := a.Clone()
	err := c.fields(args)
	if err == nil {
		err = replaced(a, clone, func(t *tensor.Tensor) bool { return !t.OnHost() })
	}
	if err != nil {
		h.Release()
		return nil, err
	}
	h.Call = clone
	return h, nil
}

// tensor returns the copy of a tensor on a device.
func (h *Host) tensor(t *tensor.Tensor, operands []opregistry.Operand) (*tensor.Tensor, error) {
	size := t.NumElements() * t.DType().Size()
	words := h.buffers.lend(size)
	h.lent = append(h.lent, words)
	to, err := tensor.FromBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	read, name := false, ""
	for _, o := range operands {
		if o.Tensor == nil || o.Tensor != t && !tensor.SameView(o.Tensor, t) {
			continue
		}
		read = read || o.Access != opregistry.AccessWrite
		if name == "" {
			name = o.Name
		}
		if o.Access != opregistry.AccessRead && (len(h.written) == 0 || h.written[len(h.written)-1].from != to) {
			h.written = append(h.written, writtenOperand{o.Name, to, t})
		}
	}
	if !read {
		return to, nil
	}
	if err := to.CopyFrom(t); err != nil {
		return nil, fmt.Errorf("copy operand %q to the host: %w", name, err)
	}
	h.In += size
	return to, nil
}

// Back copies the operands that the op wrote back to their devices. After an error some of them may
// have their new content and others their old one.
func (h *Host) Back() error {
	for _, w := range h.written {
		if err := w.to.CopyFrom(w.from); err != nil {
			return fmt.Errorf("copy operand %q back to %v: %w", w.name, w.to.Device(), err)
		}
		h.Out += w.to.NumElements() * w.to.DType().Size()
	}
	return nil
}

// Release returns the memory of the copies, which are not used afterwards.
func (h *Host) Release() {
	for _, buf := range h.lent {
		h.buffers.release(buf)
	}
	h.lent = nil
}
