package opmanager

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
)

// Bound is a handle through which an op is called. It follows changes of the policy and the
// registry.
type Bound[A any] struct {
	binding
	op *opregistry.Op[A]
}

// binding is the part of a Bound that does not depend on the type of the arguments.
type binding struct {
	table    *atomic.Pointer[table]
	index    int
	exec     *opregistry.Exec
	counters *handleCounters // nil when calls are not counted

	name       string // of the op
	handle     opregistry.Handle
	m          *Manager
	timing     bool
	verifiable atomic.Uint64 // the number of calls that could be verified
}

// Bind returns a handle for calling an op, which must be declared in the registry of the Manager.
func Bind[A any](m *Manager, op *opregistry.Op[A]) (*Bound[A], error) {
	b := &Bound[A]{op: op}
	if err := b.bind(m, op); err != nil {
		return nil, err
	}
	return b, nil
}

// bind binds an op.
func (b *binding) bind(m *Manager, op opregistry.Handle) error {
	snap := m.table.Load().registry
	i, ok := snap.Index(op.Name())
	if !ok {
		return unknownOp(snap, op.Name())
	}
	b.m, b.name, b.handle, b.table, b.index, b.exec, b.timing = m, op.Name(), op, &m.table, i, m.core.exec, m.core.timing
	if !m.core.uncounted {
		b.counters = newHandleCounters(m.core, b)
	}
	m.bound.add(i)
	runtime.AddCleanup(b, m.bound.remove, i)
	return nil
}

// MustBind is like Bind but panics if the op is not declared. It is meant for ops that the program
// itself registers.
func MustBind[A any](m *Manager, op *opregistry.Op[A]) *Bound[A] {
	b, err := Bind(m, op)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// Op returns the handle of the op.
func (b *Bound[A]) Op() *opregistry.Op[A] { return b.op }

// Call runs the op on the best candidate. It returns an *opregistry.ArgError for wrong arguments
// and a *CallError when no candidate served the call.
func (b *Bound[A]) Call(a A) (err error) {
	at, err := b.op.Locate(&a)
	if err != nil {
		return err
	}
	t := b.table.Load()
	r := &t.rows[b.index]
	// The arguments stay in this frame, because a copy on the heap would cost time in every call.
	// Their address is taken anew for each use: see noescape.
	if at != device.PlaceHost {
		r = t.row(b.index, at)
	}
	if r.slow.Load() || r.dtypes != 0 && !fits(r.dtypes, b.op.At((*A)(noescape(unsafe.Pointer(&a))))) {
		return b.callSlow(t, r, b.op.At((*A)(noescape(unsafe.Pointer(&a)))))
	}
	exec := callExec(b.exec)
	running := true
	defer func() {
		if running {
			if cause := recover(); cause != nil { // nil after runtime.Goexit
				err = b.fallBack(t, at, panicError(b.name, t.row(b.index, at).head.info.ID, cause), b.op.At((*A)(noescape(unsafe.Pointer(&a)))))
			}
		}
	}()
	failure := r.run.(opregistry.Func[A])(exec, a)
	running = false
	checkScratch(exec, b.handle, r.head)
	if failure != nil {
		return b.fallBack(t, at, b.implError(r.head, failure), b.op.At((*A)(noescape(unsafe.Pointer(&a)))))
	}
	if b.counters != nil {
		b.counters.of(r.slot).calls.Add(1)
	}
	return nil
}

// fits reports whether the lead operand of a call has one of these dtypes.
func fits(dtypes uint32, call opregistry.Call) bool {
	lead := call.Lead()
	return lead == nil || dtypes>>lead.DType()&1 != 0
}

// noescape hides a pointer from escape analysis. The pointer must not outlive the value that it
// points to. The result must be an argument of a call at
// once: as a variable the compiler may keep it as a number, which nothing corrects when the stack
// moves.
//
//go:nosplit
func noescape(p unsafe.Pointer) unsafe.Pointer {
	hidden := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&hidden))
}

// fallBack continues a call whose first candidate failed.
func (b *binding) fallBack(t *table, at device.Place, first error, a opregistry.Call) error {
	_, err := b.serve(t, t.row(b.index, at), nil, first, nil, a)
	return err
}

// callSlow serves the first call of each op after a change of the table, and calls that are timed,
// tapped, guarded, tuned by signature or restricted by the declared support of the first candidate.
func (b *binding) callSlow(t *table, r *row, a opregistry.Call) error {
	if r.variants != nil {
		if v, ok := r.variants[a.Signature()]; ok {
			r = v
		}
	}
	if len(t.taps) > 0 {
		return b.callTapped(t, r, a)
	}
	_, err := b.serveSlow(t, r, a)
	return err
}

// serveSlow serves a call and returns the impl that did.
func (b *binding) serveSlow(t *table, r *row, a opregistry.Call) (*candidate, error) {
	if r.head == nil && !r.onHost() {
		return b.serveAcross(t, r, nil, nil, a)
	}
	if r.guarded {
		return b.callGuarded(t, r, a)
	}
	if err := b.attempt(r.head, a); err != nil {
		return b.serve(t, r, nil, err, nil, a)
	}
	if !r.alwaysSlow {
		r.slow.Store(false)
	}
	return r.head, nil
}

// attempt runs an impl if its declared support includes the call.
func (b *binding) attempt(c *candidate, a opregistry.Call) error {
	if c.support != nil {
		if err := a.Served(c.support); err != nil {
			return b.implError(c, err)
		}
	}
	return b.invoke(c, a)
}

// invoke runs an impl, counts the call and returns a panic as an error.
func (b *binding) invoke(c *candidate, a opregistry.Call) (err error) {
	checkOwner(b.handle, c, a)
	exec := callExec(b.exec)
	running := true
	defer func() {
		if running {
			if cause := recover(); cause != nil {
				err = panicError(b.name, c.info.ID, cause)
			}
		}
	}()
	var start time.Time
	if b.timing {
		start = time.Now()
	}
	failure := a.Run(c.run, exec)
	running = false
	checkScratch(exec, b.handle, c)
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
			b.m.core.reportDuration(b.name, c.counters, took)
		}
	}
	if !c.served.Load() {
		b.m.core.firstServed(b.name, c)
	}
	return nil
}

func (b *binding) implError(c *candidate, err error) error {
	return &opregistry.ImplError{Op: b.name, ID: c.info.ID, Err: err}
}

// stacker is implemented by the panic values of a worker pool. Stack returns the stack of the
// worker that panicked.
type stacker interface{ Stack() []byte }

// panicError returns the error for an impl that panicked.
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

// firstServed records the first call that a candidate of a table served. It emits Selected for the
// first impl that serves an op, and Switched if another impl served the op before.
func (c *core) firstServed(op string, cand *candidate) {
	if !cand.served.CompareAndSwap(false, true) {
		return
	}
	h := cand.history
	h.mu.Lock()
	last, known := h.last[op]
	h.last[op] = cand.info
	h.mu.Unlock()
	switch {
	case !known:
		c.emit(Selected{Op: op, Impl: cand.info, Rules: h.rules})
	case last.ID != cand.info.ID && !cand.tuned:
		c.emit(Switched{Op: op, From: last, To: cand.info, Rules: h.rules})
	}
}
