package opmanager

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
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
	counters *handleCounters

	name   string // of the op
	handle opregistry.Handle
	m      *Manager
	typed  attempter
}

// attempter is a Bound, for code that does not depend on the type of the arguments.
type attempter interface {
	attemptCall(c *candidate, a opregistry.Call) error
}

// Bind returns a handle for calling an op, which must be declared in the registry of the Manager.
func Bind[A any](m *Manager, op *opregistry.Op[A]) (*Bound[A], error) {
	b := &Bound[A]{op: op}
	if err := b.bind(m, op, b); err != nil {
		return nil, err
	}
	return b, nil
}

// bind binds an op.
func (b *binding) bind(m *Manager, op opregistry.Handle, typed attempter) error {
	snap := m.table.Load().registry
	i, ok := snap.Index(op.Name())
	if !ok {
		return unknownOp(snap, op.Name())
	}
	b.m, b.name, b.handle, b.typed, b.table, b.index, b.exec = m, op.Name(), op, typed, &m.table, i, m.core.exec
	b.counters = newHandleCounters(m.core, b)
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
func (b *Bound[A]) Call(a A) error {
	at, err := b.op.Locate(&a)
	if err != nil {
		return err
	}
	t := b.table.Load()
	r := t.row(b.index, at)
	if r.variants != nil {
		r = r.variant(b.op.Signature(&a))
	}
	c := r.head
	if r.family {
		c = r.ownerOf(b.op.Saved(&a))
	}
	if r.special || c == nil || c.checks != nil && b.due(c, b.op.Signature(&a)) {
		return b.serveCopy(t, r, nil, a)
	}
	if err := b.attempt(c, &a); err != nil {
		return b.serveCopy(t, r, err, a)
	}
	if r.family && b.op.Forward() {
		b.op.Saved(&a).SetOwner(c.info.ID)
	}
	return nil
}

// due counts a call of an impl whose calls are verified, and reports whether this one has to be.
func (b *binding) due(c *candidate, signature uint64) bool {
	recent := &b.counters.of(c.slot).recent
	s := recent.Load()
	if s == nil || s.signature != signature || s.of != c.checks {
		s = c.checks.of(signature)
		recent.Store(s)
	}
	return s.count()
}

// attempt runs an impl if its declared support includes the call. It counts and times the call, and
// returns a panic as an error. Every call of an impl goes through here.
func (b *Bound[A]) attempt(c *candidate, a *A) (err error) {
	if c.support != nil && (c.dtypes == 0 || !fits(c.dtypes, b.op.Lead(a))) {
		if err := opregistry.Serves(c.support, b.op, *a); err != nil {
			return b.implError(c, err)
		}
	}
	checkOwner(b.op, c, a)
	exec := callExec(b.exec)
	running := true
	defer func() {
		if running {
			if cause := recover(); cause != nil { // nil after runtime.Goexit
				err = panicError(b.name, c.info.ID, cause)
			}
		}
	}()
	count := b.counters.of(c.slot)
	timing := count.timing()
	var start time.Duration
	if timing != nil {
		start = b.m.core.now()
	}
	failure := c.run.(opregistry.Func[A])(exec, *a)
	running = false
	checkScratch(exec, b.handle, c)
	if failure != nil {
		return b.implError(c, failure)
	}
	if timing != nil {
		took := b.m.core.now() - start
		if count.timed(timing, took)%sampledCalls == 0 {
			b.m.core.reportDuration(b.name, c.counters, took)
		}
	} else {
		count.calls.Add(1)
	}
	if !c.served.Load() {
		b.m.core.firstServed(b.name, c)
	}
	return nil
}

// attemptCall is attempt for a call whose arguments are on the heap.
func (b *Bound[A]) attemptCall(c *candidate, a opregistry.Call) error {
	return b.attempt(c, opregistry.ArgsOf[A](a))
}

// serveCopy serves a call that attempt alone does not. It has a copy of the arguments, because they
// are on the heap from here on: first is the error of the candidate that has run already.
//
//go:noinline
func (b *Bound[A]) serveCopy(t *table, r *row, first error, a A) error {
	return b.serveRest(t, r, first, b.op.At(&a))
}

// fits reports whether the lead operand of a call has one of these dtypes.
func fits(dtypes uint32, lead *tensor.Tensor) bool {
	return lead == nil || dtypes>>lead.DType()&1 != 0
}

// variant returns the row for calls of a signature.
func (r *row) variant(signature uint64) *row {
	if v, ok := r.variants[signature]; ok {
		return v
	}
	return r
}

// ownerOf returns the candidate for a call of an op of a family: the one that wrote the saved state
// of a backward op, nil if that is no longer a candidate.
func (r *row) ownerOf(saved *opregistry.Saved) *candidate {
	owner := saved.Owner()
	if r.head == nil || r.forward || owner == "" || owner == r.head.info.ID {
		return r.head
	}
	if i := position(r.order, owner); i >= 0 {
		return r.order[i]
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
	if !cand.served.CompareAndSwap(false, true) || cand.canary != nil && cand.canary.active.Load() {
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
