package library

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/abi"
)

// bound is an op that a program has bound.
type bound struct {
	call func(args []abi.Arg, saved *uint64) error
}

// Bind binds an op of a manager by its name. layout is PRIMUS_<OP>_LAYOUT of the header that the
// program was compiled with; 0 is that of the library.
func (l *Library) Bind(number uint64, name string, layout uint64) (uint64, error) {
	m, err := l.managers.get(number)
	if err != nil {
		return 0, err
	}
	if _, err := m.Explain(name); err != nil {
		return 0, err
	}
	op, err := l.named(name)
	if err != nil {
		return 0, err
	}
	params, err := plugin.Layout(op)
	if err != nil {
		return 0, failure{CodeInvalid, err}
	}
	if layout != 0 {
		known, err := plugin.Known(op, layout)
		if err != nil {
			return 0, failure{CodeInvalid, err}
		}
		params = params[:known]
	}
	b, err := binders[name](m, params)
	if err != nil {
		return 0, err
	}
	return l.bound.add(b), nil
}

// Unbind forgets a bound op.
func (l *Library) Unbind(number uint64) error {
	_, err := l.bound.take(number)
	return err
}

// Run calls a bound op with n arguments at args. saved points to the number of the impl that has
// written the saved state of a family: a forward op sets it, and its backward op reads it. It is
// nil for other ops. Memory that the arguments describe is used until Run returns.
func (l *Library) Run(number uint64, args unsafe.Pointer, n uint32, saved *uint64) error {
	b, err := l.bound.get(number)
	if err != nil {
		return err
	}
	if args == nil && n > 0 {
		return invalid("given %d arguments at NULL, want their address", n)
	}
	return b.call(unsafe.Slice((*abi.Arg)(args), n), saved)
}

// binder binds an op whose calls have these arguments.
type binder func(m *manager, params []opregistry.Param) (*bound, error)

// bind returns the binder of an op.
func bind[A any](op *opregistry.Op[A]) binder {
	return func(m *manager, params []opregistry.Param) (*bound, error) {
		call, err := opmanager.Bind(m.Manager, op)
		if err != nil {
			return nil, err
		}
		layout, err := newLayout(op, params)
		if err != nil {
			return nil, failure{CodeBug, err}
		}
		frames := &sync.Pool{New: func() any { return &frame[A]{} }}
		return &bound{call: func(args []abi.Arg, saved *uint64) error {
			f := frames.Get().(*frame[A])
			defer func() {
				f.clear()
				frames.Put(f)
			}()
			if err := layout.read(unsafe.Pointer(&f.args), args, &f.operands); err != nil {
				return err
			}
			if layout.saved < 0 {
				return call.Call(f.args)
			}
			if saved == nil {
				return invalid("op %q: given no place for the number of its saved state, want one that %s and its backward op share", op.Name(), op.Family())
			}
			*(**opregistry.Saved)(unsafe.Add(unsafe.Pointer(&f.args), layout.saved)) = &f.saved
			owner, err := m.library.owners.name(*saved)
			if err != nil {
				return err
			}
			f.saved.SetOwner(owner)
			if err := call.Call(f.args); err != nil {
				return err
			}
			*saved = m.library.owners.number(f.saved.Owner())
			return nil
		}}, nil
	}
}

// frame is the memory of a call. It is used again, so that a call allocates nothing.
type frame[A any] struct {
	args     A
	saved    opregistry.Saved
	operands operands
}

func (f *frame[A]) clear() {
	var none A
	f.args = none
	f.saved.SetOwner("")
	f.operands.clear()
}

// owners gives numbers to the ids of impls that write saved state.
type owners struct {
	mu  sync.Mutex
	ids atomic.Pointer[[]string] // replaced, never changed; impl i has the number i+1
}

func (o *owners) all() []string {
	if ids := o.ids.Load(); ids != nil {
		return *ids
	}
	return nil
}

// number returns the number of an impl, 0 for none.
func (o *owners) number(id string) uint64 {
	if id == "" {
		return 0
	}
	if i := slices.Index(o.all(), id); i >= 0 {
		return uint64(i) + 1
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.all(), id); i >= 0 {
		return uint64(i) + 1
	}
	next := append(slices.Clone(o.all()), id)
	o.ids.Store(&next)
	return uint64(len(next))
}

// name returns the impl with a number.
func (o *owners) name(number uint64) (string, error) {
	if number == 0 {
		return "", nil
	}
	ids := o.all()
	if number > uint64(len(ids)) {
		return "", failure{CodeInvalid, fmt.Errorf("given saved state of impl %d, want a number that a forward op has written, or 0 before it has run", number)}
	}
	return ids[number-1], nil
}
