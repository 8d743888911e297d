package model_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/require"
)

// hall is where ranks that are goroutines of a test meet for collectives.
type hall struct {
	mu       sync.Mutex
	calls    map[collective.Group]int // by each rank of each group
	meetings map[meetingKey]*meeting
	broken   chan struct{} // closed when a rank has failed, so that the others end
}

// meetingKey is the n-th collective of a group.
type meetingKey struct {
	first, stride, ranks, n int
}

type meeting struct {
	args []any // of the ranks that have come
	come int
	done chan struct{}
	err  error
}

// job runs a function in each of so many ranks that are goroutines.
func job(t *testing.T, ranks int, do func(w *world.World, mgr *opmanager.Manager) error) {
	t.Helper()
	h := &hall{calls: map[collective.Group]int{}, meetings: map[meetingKey]*meeting{}, broken: make(chan struct{})}
	reg := opregistry.NewRegistry()
	for _, s := range []opregistry.Source{reference.Source(), flagos.Source(), h.source()} {
		require.NoError(t, reg.Register(s))
	}
	faults := make([]error, ranks)
	var all sync.WaitGroup
	var once sync.Once
	for rank := range ranks {
		policy := oppolicy.Default()
		policy.Strict = true // no call of any layout needs another impl
		mgr := opmanager.New(reg, policy, opmanager.Settings{})
		w := world.New(mgr, collective.Group{Rank: rank, Ranks: ranks})
		all.Go(func() {
			defer mgr.Close()
			defer w.Close()
			if faults[rank] = do(w, mgr); faults[rank] != nil {
				once.Do(func() { close(h.broken) })
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(faults...))
}

// source returns the collectives that a job needs.
func (h *hall) source() opregistry.Source {
	flat := func(t *tensor.Tensor) []float32 { return tensor.Data[float32](t) }
	sum := func(i int, inputs []*tensor.Tensor) float32 {
		total := 0.0
		for _, t := range inputs {
			total += float64(flat(t)[i])
		}
		return float32(total)
	}
	impls := []opregistry.Impl{
		meet(h, collective.AllReduce, func(a collective.AllReduceArgs) collective.Group { return a.Group }, func(all []collective.AllReduceArgs) error {
			var inputs []*tensor.Tensor
			for _, a := range all {
				inputs = append(inputs, a.Input)
			}
			for i := range flat(all[0].Input) { // outputs may be inputs
				total := sum(i, inputs)
				for _, a := range all {
					flat(a.Output)[i] = total
				}
			}
			return nil
		}),
		meet(h, collective.ReduceScatter, func(a collective.ReduceScatterArgs) collective.Group { return a.Group }, func(all []collective.ReduceScatterArgs) error {
			var inputs []*tensor.Tensor
			for _, a := range all {
				inputs = append(inputs, a.Input)
			}
			for rank, a := range all {
				n := a.Output.NumElements()
				for i := range n {
					flat(a.Output)[i] = sum(rank*n+i, inputs)
				}
			}
			return nil
		}),
		meet(h, collective.AllGather, func(a collective.AllGatherArgs) collective.Group { return a.Group }, func(all []collective.AllGatherArgs) error {
			for _, to := range all {
				for rank, from := range all {
					n := from.Input.NumElements()
					copy(flat(to.Output)[rank*n:], flat(from.Input))
				}
			}
			return nil
		}),
		meet(h, collective.AllToAll, func(a collective.AllToAllArgs) collective.Group { return a.Group }, func(all []collective.AllToAllArgs) error {
			for to, a := range all {
				n := a.Input.NumElements() / len(all)
				for from, b := range all {
					copy(flat(a.Output)[from*n:(from+1)*n], flat(b.Input)[to*n:])
				}
			}
			return nil
		}),
		meet(h, collective.Broadcast, func(a collective.BroadcastArgs) collective.Group { return a.Group }, func(all []collective.BroadcastArgs) error {
			for rank, a := range all {
				if rank != a.Root {
					copy(flat(a.Buffer), flat(all[a.Root].Buffer))
				}
			}
			return nil
		}),
	}
	return opregistry.Source{Name: "goroutines", Impls: impls}
}

// meet makes an impl that waits for all ranks of a group, of which the last one does the work of
// all.
func meet[A any](h *hall, op *opregistry.Op[A], group func(A) collective.Group, work func(all []A) error) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: "default.goroutines", Kind: opregistry.KindFlagos, Priority: 1000,
		Run: func(_ *opregistry.Exec, a A) error {
			g := group(a)
			h.mu.Lock()
			key := meetingKey{g.First, g.Stride, g.Ranks, h.calls[g]}
			h.calls[g]++
			m := h.meetings[key]
			if m == nil {
				m = &meeting{args: make([]any, g.Ranks), done: make(chan struct{})}
				h.meetings[key] = m
			}
			m.args[g.Rank] = a
			m.come++
			last := m.come == g.Ranks
			if last {
				delete(h.meetings, key)
			}
			h.mu.Unlock()
			if last {
				all := make([]A, g.Ranks)
				for i, x := range m.args {
					one, ok := x.(A)
					if !ok {
						m.err = fmt.Errorf("rank %d has called %T, rank %d %T", i, x, g.Rank, a)
						break
					}
					all[i] = one
				}
				if m.err == nil {
					m.err = work(all)
				}
				close(m.done)
			}
			select {
			case <-m.done:
				return m.err
			case <-h.broken:
				return errors.New("another rank has failed")
			}
		},
	}
}
