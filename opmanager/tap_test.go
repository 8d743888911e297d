package opmanager_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tap notes calls as "op@layer phase impl".
type tap struct {
	seen  []string
	fault error
}

func (p *tap) Begin(c opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	return func(served opmanager.ImplInfo, err error) error {
		p.seen = append(p.seen, fmt.Sprintf("%s@%d %v %s %v", c.Op.Name(), c.Layer, c.Phase == oppolicy.PhaseBackward, served.ID, err != nil))
		return p.fault
	}
}

func TestTapSeesCalls(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	inLayer := opmanager.MustBind(f.Layer(3).Phase(oppolicy.PhaseBackward), addOne)
	other := opmanager.MustBind(f.With(oppolicy.Default()), addOne)
	require.NoError(t, bound.Call(newArgs(t)))

	seen := &tap{}
	remove := f.Tap(seen)
	require.NoError(t, bound.Call(newArgs(t)))
	require.NoError(t, inLayer.Call(newArgs(t)))
	require.NoError(t, other.Call(newArgs(t)))
	f.vendor.do = declines
	require.NoError(t, bound.Call(newArgs(t)))
	f.vendor.do, f.flagos.do, f.reference.do = declines, declines, declines
	require.Error(t, bound.Call(newArgs(t)))
	require.Error(t, bound.Call(addArgs{}), "an argument that is wrong")
	f.vendor.do = nil
	remove()
	remove()
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, []string{
		"add_one@-1 false vendor.acme false", "add_one@3 true vendor.acme false", "add_one@-1 false default.flagos false",
		"add_one@-1 false default.flagos false", "add_one@-1 false  true",
	}, seen.seen)
}

// A tap keeps the call in memory that the runtime does not correct when the stack moves.
func TestTapOutlivesTheStack(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	var read []float64
	defer f.Tap(keeps(func(c opmanager.TappedCall) { read = c.Args.Operands()[0].Tensor.Float64s() }))()
	done := make(chan error)
	f.vendor.do = func(addArgs) error {
		grow(1 << 10) // the stack moves while the vendor's impl runs
		var others sync.WaitGroup
		for range 64 {
			others.Go(func() { grow(1 << 8) }) // these may get the memory of the old stack
		}
		others.Wait()
		runtime.GC()
		return nil
	}
	go func() { done <- bound.Call(newArgs(t)) }()
	require.NoError(t, <-done)
	assert.Equal(t, newArgs(t).In.Float64s(), read)
}

// keeps is a tap that looks at the arguments after the call.
type keeps func(opmanager.TappedCall)

func (k keeps) Begin(c opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	return func(opmanager.ImplInfo, error) error {
		k(c)
		return nil
	}
}

func TestTapSeesFamilies(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	seen := &tap{}
	defer f.Tap(seen)()
	a := newPair(t)
	require.NoError(t, opmanager.MustBind(f.Manager, pairFwd).Call(a))
	require.NoError(t, opmanager.MustBind(f.Manager, pairBwd).Call(a))
	assert.Equal(t, []string{"pair_fwd@-1 false vendor.acme false", "pair_bwd@-1 false vendor.acme false"}, seen.seen)
}

// The error of a tap is that of the call, and another impl is not tried.
func TestTapEndsCall(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	fault := errors.New("not finite")
	first, second := &tap{}, &tap{fault: fault}
	defer f.Tap(first)()
	defer f.Tap(second)()
	a := newArgs(t)
	require.ErrorIs(t, opmanager.MustBind(f.Manager, addOne).Call(a), fault)
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	assert.Zero(t, f.flagos.calls)
	assert.Len(t, first.seen, 1)
}
