package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// dispatchArgs are the arguments of an op with two operands and an option.
type dispatchArgs struct {
	In  *tensor.Tensor `op:"0 in read compute ?"`
	Out *tensor.Tensor `op:"1 out write compute ?"`
	Eps float32        `op:"2 eps"`
}

var dispatchOp = opregistry.NewOp("bench_op", opregistry.Schema[dispatchArgs]{Doc: "an op that does nothing"})

func noop(*opregistry.Exec, dispatchArgs) error { return nil }

// contained calls an impl and turns a panic into an error: the lowest possible cost of a call that
// survives a panic.
//
//go:noinline
func contained(run opregistry.Func[dispatchArgs], ex *opregistry.Exec, a dispatchArgs) (err error) {
	running := true
	defer func() {
		if running {
			err = fmt.Errorf("panic: %v", recover())
		}
	}()
	err = run(ex, a)
	running = false
	return err
}

// alwaysTimed is the number of calls of a new handle that are all timed.
const alwaysTimed = 64

// dispatchRow is one way to call the op.
type dispatchRow struct {
	name   string
	limit  string          // what the project promises
	base   bool            // the direct call that the others are compared with
	before func(calls int) // makes ready for a batch; nil for nothing
	batch  func(calls int)
	best   time.Duration // a call
}

// dispatch compares the cost of dispatch with a direct call, in one run, and prints a Markdown
// table. Batches of all rows alternate, and the fastest batch of each row counts, so that other
// load on the machine has little effect.
func dispatch(_ context.Context, args []string, out, progress io.Writer) error {
	flags := newFlags("dispatch", progress)
	rounds := flags.Int("rounds", 3000, "batches of each row")
	calls := flags.Int("calls", 1000, "calls of a batch")
	if err := parse(flags, args); err != nil {
		return err
	}
	return runDispatch(out, *rounds, *calls)
}

func runDispatch(out io.Writer, rounds, calls int) error {
	x, err := tensor.FromSlice([]float32{1})
	if err != nil {
		return err
	}
	a := dispatchArgs{In: x, Eps: 1}
	rows, err := dispatchRows(a)
	if err != nil {
		return err
	}
	for range rounds {
		for i := range rows {
			if before := rows[i].before; before != nil {
				before(calls)
			}
			start := time.Now()
			rows[i].batch(calls)
			took := time.Since(start)
			if rows[i].best == 0 || took < rows[i].best {
				rows[i].best = took
			}
		}
	}
	fmt.Fprintf(out, "%s, %s/%s, %d CPUs; best of %d batches of %d calls\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, calls)
	fmt.Fprintln(out, "| call | ns | more than direct and validated | allocations | promise |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	base := rows[slices.IndexFunc(rows, func(r dispatchRow) bool { return r.base })].best
	for _, r := range rows {
		ns := float64(r.best.Nanoseconds()) / float64(calls)
		fmt.Fprintf(out, "| %s | %.1f | %.1f | %d | %s |\n", r.name, ns, ns-float64(base.Nanoseconds())/float64(calls), allocations(r.batch, calls), r.limit)
	}
	alone, together := contention(rounds, calls, a)
	fmt.Fprintf(out, "| bound, two goroutines with a handle each | %.1f | %.2fx the rate of one goroutine | 0 | >= 0.77x |\n", together, alone/together)
	rebuild, err := rebuildTime()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| change of policy, 150 ops x 10 impls | %.0f us | callers do not wait | | <= 1000 us |\n", float64(rebuild.Nanoseconds())/1e3)
	return nil
}

func dispatchManager(edit func(*opregistry.Impl)) (*opmanager.Manager, error) {
	first := opregistry.Impl{Op: dispatchOp, ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150, Run: noop}
	if edit != nil {
		edit(&first)
	}
	reg := opregistry.NewRegistry()
	err := reg.Register(opregistry.Source{Name: "bench", Impls: []opregistry.Impl{
		first, {Op: dispatchOp, ID: "reference.go", Kind: opregistry.KindReference, Priority: 50, Run: noop},
	}})
	return opmanager.New(reg, oppolicy.Default(), opmanager.Settings{}), err
}

func dispatchRows(a dispatchArgs) ([]dispatchRow, error) {
	var ex opregistry.Exec
	direct := []opregistry.Func[dispatchArgs]{noop}
	rows := []dispatchRow{{name: "direct, through a func value", batch: func(n int) {
		for range n {
			_ = direct[0](&ex, a)
		}
	}}, {name: "direct, arguments validated", base: true, batch: func(n int) {
		for range n {
			if dispatchOp.ValidateAt(&a) == nil {
				_ = direct[0](&ex, a)
			}
		}
	}}, {name: "direct, arguments validated, panics contained", batch: func(n int) {
		for range n {
			if dispatchOp.ValidateAt(&a) == nil {
				_ = contained(direct[0], &ex, a)
			}
		}
	}}}
	var faults []error
	add := func(name, limit string, edit func(*opregistry.Impl), prepare func(*opmanager.Manager)) {
		m, err := dispatchManager(edit)
		faults = append(faults, err)
		if prepare != nil {
			prepare(m)
		}
		bound := opmanager.MustBind(m, dispatchOp)
		rows = append(rows, dispatchRow{name: name, limit: limit, batch: func(n int) {
			for range n {
				_ = bound.Call(a)
			}
		}})
	}
	add("bound, counted, one in 28 timed", "<= 12 more", nil, nil)
	add("bound, the impl declares its dtypes", "", func(i *opregistry.Impl) {
		i.Support.DTypes = []tensor.DType{tensor.F32}
	}, nil)
	add("bound, the first choice is in quarantine", "as bound", func(i *opregistry.Impl) {
		i.Run = func(*opregistry.Exec, dispatchArgs) error { return errors.New("broken") }
	}, func(m *opmanager.Manager) {
		for len(m.Quarantines()) == 0 {
			_ = opmanager.MustBind(m, dispatchOp).Call(a)
		}
	})
	m, err := dispatchManager(nil)
	faults = append(faults, err)
	var fresh []*opmanager.Bound[dispatchArgs]
	rows = append(rows, dispatchRow{name: "bound, counted and timed, as calls over 10 us are", before: func(n int) {
		fresh = nil
		for range n/alwaysTimed + 1 {
			fresh = append(fresh, opmanager.MustBind(m, dispatchOp))
		}
	}, batch: func(n int) {
		for i := range n {
			_ = fresh[i/alwaysTimed].Call(a)
		}
	}})
	rows = append(rows, dispatchRow{name: "by name", limit: "<= 60", batch: func(n int) {
		for range n {
			_ = opmanager.Call(m, "bench_op", a)
		}
	}})
	return rows, errors.Join(faults...)
}

// allocations returns the number of allocations per call, the smallest of some batches because
// other goroutines of the runtime allocate, too.
func allocations(batch func(int), calls int) uint64 {
	least := ^uint64(0)
	var before, after runtime.MemStats
	for range 10 {
		runtime.ReadMemStats(&before)
		batch(calls)
		runtime.ReadMemStats(&after)
		least = min(least, (after.Mallocs-before.Mallocs)/uint64(calls))
	}
	return least
}

// contention returns the time of a call in nanoseconds on one goroutine and on two that share a
// manager.
func contention(rounds, calls int, a dispatchArgs) (alone, together float64) {
	m, err := dispatchManager(nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	calls *= 20 // so that both run at the same time for most of a batch
	measure := func(goroutines int) time.Duration {
		var best time.Duration
		for range max(1, rounds/20) {
			var wg sync.WaitGroup
			took := make([]time.Duration, goroutines)
			start := make(chan struct{})
			for g := range goroutines {
				wg.Go(func() {
					bound := opmanager.MustBind(m, dispatchOp)
					<-start
					began := time.Now()
					for range calls {
						_ = bound.Call(a)
					}
					took[g] = time.Since(began)
				})
			}
			close(start)
			wg.Wait()
			slowest := took[0]
			for _, d := range took {
				slowest = max(slowest, d)
			}
			if best == 0 || slowest < best {
				best = slowest
			}
		}
		return best
	}
	return float64(measure(1)) / float64(calls), float64(measure(2)) / float64(calls)
}

// rebuildTime returns the shortest time that a change of policy took.
func rebuildTime() (time.Duration, error) {
	src := opregistry.Source{Name: "bench"}
	for i := range 150 {
		op := opregistry.NewOp(fmt.Sprintf("op_%d", i), opregistry.Schema[dispatchArgs]{})
		for k := range 10 {
			src.Impls = append(src.Impls, opregistry.Impl{
				Op: op, ID: fmt.Sprint("vendor.v", k), Kind: opregistry.KindVendor, Vendor: fmt.Sprint("v", k), Priority: 100, Run: noop,
				Available: func() error { return nil },
			})
		}
	}
	reg := opregistry.NewRegistry()
	if err := reg.Register(src); err != nil {
		return 0, err
	}
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	policy := m.Policy()
	if err := policy.SetDeny("v3,v4", "bench"); err != nil {
		return 0, err
	}
	best := time.Hour
	for range 200 {
		start := time.Now()
		m.SetPolicy(policy)
		best = min(best, time.Since(start))
	}
	return best, nil
}
