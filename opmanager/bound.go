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
	counters *handleCounters
}

// Bind returns the handle through which a layer calls an op. The op must be
// declared in the Manager's registry.
func Bind[A any](m *Manager, op *opregistry.Op[A]) (*Bound[A], error) {
	i, ok := m.table.Load().registry.Index(op.Name())
	if !ok {
		return nil, fmt.Errorf("opmanager: op %q: %w by any loaded source", op.Name(), opregistry.ErrNotFound)
	}
	b := &Bound[A]{m: m, op: op, index: i}
	b.counters = newHandleCounters(b)
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
	if r.head == nil || r.cold {
		return b.callCold(t, r, a)
	}
	if err := b.invoke(r.head, a); err != nil {
		return b.fallback(t, r, err, a)
	}
	return nil
}

// invoke runs one impl, counts the call and turns a panic into an error.
func (b *Bound[A]) invoke(c *candidate, a A) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(b.op.Name(), c.info.ID, cause)
		}
	}()
	core := b.m.core
	var start time.Time
	if core.timing {
		start = time.Now()
	}
	if err := c.run.(opregistry.Func[A])(core.exec, a); err != nil {
		return &opregistry.ImplError{Op: b.op.Name(), ID: c.info.ID, Err: err}
	}
	count := b.counters.of(c)
	if core.timing {
		count.nanos.Add(int64(time.Since(start)))
	}
	if count.calls.Add(1) == 1 {
		core.served(b.op.Name(), c.info)
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

// served records the impl that serves an op and tells listeners when it is the
// first or another one.
func (c *core) served(op string, info ImplInfo) {
	c.lastMu.Lock()
	last, seen := c.last[op]
	c.last[op] = info
	c.lastMu.Unlock()
	switch {
	case !seen:
		c.emit(Selected{Op: op, Impl: info})
	case last.ID != info.ID:
		c.emit(Switched{Op: op, From: last, To: info})
	}
}
