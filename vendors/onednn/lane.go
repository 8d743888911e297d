package onednn

import (
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/loader"
)

// maxKept is how many primitives a lane keeps; a training step needs only a few.
const maxKept = 32

// lane creates and runs primitives for one caller at a time, with its own stream, memory objects
// and scratchpads.
type lane struct {
	*primitives
	stream uintptr
	kept   map[spec]*primitive
	clock  int // counts calls

	spec spec
	data [maxOperands]unsafe.Pointer
	args [4]uintptr
	err  error
	run  func()
}

// newLanes returns one lane for each concurrent caller.
func newLanes(lib *loader.Library, major int32, callers int) (chan *lane, error) {
	p, err := bindPrimitives(lib, major)
	if err != nil {
		return nil, err
	}
	lanes := make(chan *lane, callers)
	for range callers {
		l, err := newLane(p)
		if err != nil {
			return nil, err
		}
		lanes <- l
	}
	return lanes, nil
}

func newLane(p *primitives) (*lane, error) {
	l := &lane{primitives: p, kept: map[spec]*primitive{}}
	l.run = l.call
	return l, succeeded("dnnl_stream_create", p.createStream(&l.stream, p.engine, streamInOrder))
}

// call runs the primitive of l.spec over l.data.
func (l *lane) call() {
	var p *primitive
	if p, l.err = l.primitive(l.spec); l.err != nil {
		l.err = opregistry.Unsupported("%v", l.err)
		return
	}
	for i, o := range p.args[:p.operands] {
		l.args[0], l.args[1] = o.memory, uintptr(l.data[i])
		if l.err = succeeded("dnnl_memory_set_data_handle", int32(loader.Call(l.setData, l.args[:2]...))); l.err != nil {
			return
		}
	}
	l.args = [...]uintptr{p.handle, l.stream, uintptr(len(p.args)), uintptr(unsafe.Pointer(&p.args[0]))}
	if l.err = succeeded("dnnl_primitive_execute", int32(loader.Call(l.execute, l.args[:]...))); l.err != nil {
		return
	}
	l.args[0] = l.stream
	l.err = succeeded("dnnl_stream_wait", int32(loader.Call(l.wait, l.args[:1]...)))
}

// primitive returns the primitive of a spec. When there are maxKept, a new one replaces the one
// that was used least recently.
func (l *lane) primitive(s spec) (*primitive, error) {
	l.clock++
	if p := l.kept[s]; p != nil {
		p.used = l.clock
		return p, nil
	}
	p, err := newPrimitive(l.primitives, s)
	if err != nil {
		return nil, err
	}
	if len(l.kept) == maxKept {
		oldest, used := s, l.clock
		for s, p := range l.kept {
			if p.used < used {
				oldest, used = s, p.used
			}
		}
		l.kept[oldest].release(l.primitives)
		delete(l.kept, oldest)
	}
	p.used = l.clock
	l.kept[s] = p
	return p, nil
}

// execute runs the primitive of a spec over operands, in the order of spec.operands, on one of the
// fixed threads. It waits while all are busy. The error wraps ErrUnsupported if oneDNN cannot
// create the primitive; then nothing was written.
func (h *handle) execute(s spec, data ...unsafe.Pointer) error {
	l := <-h.lanes
	l.spec = s
	copy(l.data[:], data)
	err := h.fixed.Do(l.run)
	if err == nil {
		err = l.err
	}
	clear(l.data[:])
	h.lanes <- l
	return err
}
