package opmanager_test

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Calls read and write what they were given while their stacks move inside of an impl and the
// garbage collector runs: when the impl serves them, declines, fails and panics, in ops with and
// without functions in their schemas, and by a handle that goroutines share.
func TestCallsWhileStacksMoveAndMemoryIsCollected(t *testing.T) {
	const goroutines, rounds = 8, 24
	f := newManager(t, nil, opmanager.Settings{})
	var turn atomic.Int64
	moving := func(_ *opregistry.Exec, a addArgs) error {
		grow(1 << 10)
		goruntime.Gosched()
		switch turn.Add(1) % 4 {
		case 0:
			return opregistry.Unsupported("the stack has moved")
		case 1:
			panic("the stack has moved")
		}
		for i, x := range tensor.Data[float32](a.In) {
			tensor.Data[float32](a.Out)[i] = x + 1
		}
		return nil
	}
	plain := opregistry.NewOp("move", opregistry.Schema[addArgs]{})
	hooked := opregistry.NewOp("move_hooked", opregistry.Schema[addArgs]{Check: func(c *opregistry.Check, a *addArgs) {
		if grow(1 << 7); a.In.NumElements() == 0 {
			c.Fail("in", "elements", "none")
		}
	}})
	still := func(_ *opregistry.Exec, a addArgs) error {
		for i, x := range tensor.Data[float32](a.In) {
			tensor.Data[float32](a.Out)[i] = x + 1
		}
		return nil
	}
	source := opregistry.Source{Name: "moving"}
	for _, op := range []*opregistry.Op[addArgs]{plain, hooked} {
		source.Impls = append(source.Impls,
			opregistry.Impl{Op: op, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: moving},
			opregistry.Impl{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: still})
	}
	if err := f.registry.Register(source); err != nil {
		t.Fatal(err)
	}
	policy := f.Policy()
	policy.Quarantine.Disabled = true
	if err := setPolicy(f.Manager, policy); err != nil {
		t.Fatal(err)
	}
	shared := opmanager.MustBind(f.Manager, hooked)

	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				goruntime.GC()
			}
		}
	})
	var callers sync.WaitGroup
	for range goroutines {
		callers.Go(func() {
			own := opmanager.MustBind(f.Manager, plain)
			for range rounds {
				for _, call := range []func(addArgs) error{own.Call, shared.Call} {
					done := make(chan struct{})
					go func() { // with a small stack
						defer close(done)
						a := newArgs(t)
						assert.NoError(t, call(a))
						assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
					}()
					<-done
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	collector.Wait()
}
