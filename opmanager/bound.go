package opmanager

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Bound is an op of a Manager, ready to be called. It follows every change of
// policy and registry.
type Bound[A any] struct {
	table    *atomic.Pointer[table]
	validate func(A) error
	lead     func(A) *tensor.Tensor
	index    int
	exec     *opregistry.Exec
	counters *handleCounters // nil when calls are not counted

	op         *opregistry.Op[A]
	m          *Manager
	timing     bool
	verifiable atomic.Uint64 // calls that verification may sample
}

// Bind returns the handle through which a layer calls an op. The op must be
// declared in the Manager's registry.
func Bind[A any](m *Manager, op *opregistry.Op[A]) (*Bound[A], error) {
	snap := m.table.Load().registry
	i, ok := snap.Index(op.Name())
	if !ok {
		return nil, unknownOp(snap, op.Name())
	}
	b := &Bound[A]{m: m, op: op, table: &m.table, validate: op.Validator(), lead: op.Leader(), index: i, exec: m.core.exec, timing: m.core.timing}
	if !m.core.uncounted {
		b.counters = newHandleCounters(m.core, b)
	}
	m.bound.add(i)
	runtime.AddCleanup(b, m.bound.remove, i)
	return b, nil
}

// MustBind is Bind for ops that the program itself has registered; it panics
// where Bind returns an error.
func MustBind[A any](m *Manager, op *opregistry.Op[A]) *Bound[A] {
	b, err := Bind(m, op)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// Op returns the handle of the op.
func (b *Bound[A]) Op() *opregistry.Op[A] { return b.op }

// Call runs the op on the best candidate. It returns an *opregistry.ArgError for
// wrong arguments and a *CallError when no candidate served the call.
func (b *Bound[A]) Call(a A) (err error) {
	if err := b.validate(a); err != nil {
		return err
	}
	t := b.table.Load()
	r := &t.rows[b.index]
	if r.special.Load() || r.dtypes != 0 && !b.fits(r.dtypes, a) {
		return b.callSpecial(t, r, a)
	}
	// The deferred function reads the arguments through a pointer, because a
	// captured copy would cost every call. It points into this frame.
	args := (*A)(noescape(unsafe.Pointer(&a)))
	exec := callExec(b.exec)
	running := true
	defer func() {
		if running {
			if cause := recover(); cause != nil { // nil: the goroutine ends
				err = b.fallBack(t, panicError(b.op.Name(), t.rows[b.index].head.info.ID, cause), *args)
			}
		}
	}()
	failure := r.run.(opregistry.Func[A])(exec, a)
	running = false
	checkScratch(exec, b.op, r.head)
	if failure != nil {
		return b.fallBack(t, b.implError(r.head, failure), a)
	}
	if b.counters != nil {
		b.counters.of(r.slot).calls.Add(1)
	}
	return nil
}

// fits reports whether the lead operand of a call has one of these dtypes.
func (b *Bound[A]) fits(dtypes uint32, a A) bool {
	if b.lead == nil {
		return false
	}
	lead := b.lead(a)
	return lead == nil || dtypes>>lead.DType()&1 != 0
}

// noescape hides a pointer from escape analysis. The pointer must not outlive what
// it points to.
//
//go:nosplit
func noescape(p unsafe.Pointer) unsafe.Pointer {
	hidden := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&hidden))
}

// fallBack continues a call whose first candidate failed.
func (b *Bound[A]) fallBack(t *table, first error, a A) error {
	_, err := b.serve(t, &t.rows[b.index], nil, first, nil, a)
	return err
}

// callSpecial serves calls that need more than the first candidate and a count,
// and the first one that a table's first candidate serves.
func (b *Bound[A]) callSpecial(t *table, r *row, a A) error {
	if r.cold {
		return b.callCold(t, r, a)
	}
	if err := b.attempt(r.head, a); err != nil {
		return b.fallBack(t, err, a)
	}
	if !r.unusual {
		r.special.Store(false)
	}
	return nil
}

// attempt runs one impl unless its declared support rules the call out.
func (b *Bound[A]) attempt(c *candidate, a A) error {
	if c.support != nil {
		if err := opregistry.Serves(c.support, b.op, a); err != nil {
			return b.implError(c, err)
		}
	}
	return b.invoke(c, a)
}

// invoke runs one impl, counts the call and turns a panic into an error.
func (b *Bound[A]) invoke(c *candidate, a A) (err error) {
	checkOwner(b.op, c, a)
	exec := callExec(b.exec)
	running := true
	defer func() {
		if running {
			if cause := recover(); cause != nil {
				err = panicError(b.op.Name(), c.info.ID, cause)
			}
		}
	}()
	var start time.Time
	if b.timing {
		start = time.Now()
	}
	failure := c.run.(opregistry.Func[A])(exec, a)
	running = false
	checkScratch(exec, b.op, c)
	if failure != nil {
		return b.implError(c, failure)
	}
	if b.counters != nil {
		count := b.counters.of(c.slot)
		var took time.Duration
		if b.timing {
			took = time.Since(start)
			count.nanos.Add(int64(took))
		}
		if calls := count.calls.Add(1); b.timing && calls%sampledCalls == 0 {
			b.m.core.tellDuration(b.op.Name(), c.counters, took)
		}
	}
	if !c.served.Load() {
		b.m.core.firstServed(b.op.Name(), c)
	}
	return nil
}

func (b *Bound[A]) implError(c *candidate, err error) error {
	return &opregistry.ImplError{Op: b.op.Name(), ID: c.info.ID, Err: err}
}

// stacker is what a pool's panic value offers besides itself: the stack of the
// worker that panicked.
type stacker interface{ Stack() []byte }

func panicError(op, id string, cause any) error {
	stack := debug.Stack()
	if s, ok := cause.(stacker); ok {
		stack = s.Stack()
	}
	err, ok := cause.(error)
	if ok {
		err = fmt.Errorf("panic: %w", err)
	} else {
		err = fmt.Errorf("panic: %v", cause)
	}
	return &opregistry.ImplError{Op: op, ID: id, Err: err, Stack: stack}
}

// firstServed is called after the first success of a candidate and tells listeners
// when the op is served for the first time or by another impl than before.
func (c *core) firstServed(op string, cand *candidate) {
	if !cand.served.CompareAndSwap(false, true) {
		return
	}
	l := cand.line
	l.mu.Lock()
	last, known := l.last[op]
	l.last[op] = cand.info
	l.mu.Unlock()
	switch {
	case !known:
		c.emit(Selected{Op: op, Impl: cand.info, Rules: l.rules})
	case last.ID != cand.info.ID:
		c.emit(Switched{Op: op, From: last, To: cand.info, Rules: l.rules})
	}
}
