package opmanager

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// Bound is an op of a Manager, ready to be called. It follows every change of
// policy and registry.
type Bound[A any] struct {
	m        *Manager
	op       *opregistry.Op[A]
	index    int
	exec     *opregistry.Exec
	timing   bool
	counters *handleCounters // nil when calls are not counted
}

// Bind returns the handle through which a layer calls an op. The op must be
// declared in the Manager's registry.
func Bind[A any](m *Manager, op *opregistry.Op[A]) (*Bound[A], error) {
	i, ok := m.table.Load().registry.Index(op.Name())
	if !ok {
		return nil, fmt.Errorf("opmanager: op %q: %w by any loaded source", op.Name(), opregistry.ErrNotFound)
	}
	b := &Bound[A]{m: m, op: op, index: i, exec: m.core.exec, timing: m.core.timing}
	if b.timing || !m.core.uncounted {
		b.counters = newHandleCounters(b)
	}
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
func (b *Bound[A]) Call(a A) error {
	if err := b.op.Validate(a); err != nil {
		return err
	}
	t := b.m.table.Load()
	r := &t.rows[b.index]
	if r.cold {
		return b.callCold(t, r, a)
	}
	if err := b.attempt(r.head, a); err != nil {
		_, err = b.serve(t, r, nil, err, a)
		return err
	}
	return nil
}

// attempt runs one impl unless its declared support rules the call out.
func (b *Bound[A]) attempt(c *candidate, a A) error {
	if c.support != nil {
		if err := opregistry.Serves(c.support, b.op, a); err != nil {
			return &opregistry.ImplError{Op: b.op.Name(), ID: c.info.ID, Err: err}
		}
	}
	return b.invoke(c, a)
}

// invoke runs one impl, counts the call and turns a panic into an error.
func (b *Bound[A]) invoke(c *candidate, a A) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(b.op.Name(), c.info.ID, cause)
		}
	}()
	if b.timing {
		return b.invokeTimed(c, a)
	}
	if err := c.run.(opregistry.Func[A])(b.exec, a); err != nil {
		return &opregistry.ImplError{Op: b.op.Name(), ID: c.info.ID, Err: err}
	}
	if b.counters != nil {
		b.counters.of(c).calls.Add(1)
	}
	if !c.served.Load() {
		b.m.core.firstServed(b.op.Name(), c)
	}
	return nil
}

func (b *Bound[A]) invokeTimed(c *candidate, a A) error {
	start := time.Now()
	if err := c.run.(opregistry.Func[A])(b.exec, a); err != nil {
		return &opregistry.ImplError{Op: b.op.Name(), ID: c.info.ID, Err: err}
	}
	took := time.Since(start)
	count := b.counters.of(c)
	count.nanos.Add(int64(took))
	count.calls.Add(1)
	if !c.served.Load() {
		b.m.core.firstServed(b.op.Name(), c)
	}
	return nil
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
