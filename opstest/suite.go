package opstest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Case is one call of an op.
type Case[A any] struct {
	Name string
	Make func(*Stage) A
}

// Spec describes how one op is tested. Its method untyped makes it part of a Kit.
type Spec[A any] struct {
	Op *opregistry.Op[A]

	// Cases returns the calls with operands of one storage dtype.
	Cases func(tensor.DType) []Case[A]

	// Refresh overwrites the saved state in the operands of a backward call by running a forward
	// impl. It returns that impl's error if it declines. Nil for other ops.
	Refresh func(tensortest.TB, *opregistry.Exec, A, opregistry.Impl) error

	// Values returns what is compared with the oracle instead of the written operands, for ops
	// whose single operands have no meaning on their own. Nil for most ops.
	Values func(A) []opregistry.Operand

	// Bitwise requires the oracle's bits: the op copies patterns, including those of NaN.
	Bitwise bool
}

// Suite is a suite whose calls do not have the type of their arguments, so that the code that runs
// a suite is compiled once and not for each op.
type Suite struct {
	op      opregistry.Handle
	cases   func(tensor.DType) []untypedCase
	refresh func(tensortest.TB, *opregistry.Exec, opregistry.Call, opregistry.Impl) error
	values  func(opregistry.Call) []opregistry.Operand
	bitwise bool
}

// untypedCase is a Case whose arguments are known as a call only.
type untypedCase struct {
	Name string
	Make func(*Stage) opregistry.Call
}

func (s Spec[A]) Suite() *Suite {
	u := &Suite{op: s.Op, bitwise: s.Bitwise, cases: func(d tensor.DType) []untypedCase { return untyped(s.Op, s.Cases(d)) }}
	if refresh := s.Refresh; refresh != nil {
		u.refresh = func(t tensortest.TB, x *opregistry.Exec, a opregistry.Call, forward opregistry.Impl) error {
			return refresh(t, x, *opregistry.ArgsOf[A](a), forward)
		}
	}
	if values := s.Values; values != nil {
		u.values = func(a opregistry.Call) []opregistry.Operand { return values(*opregistry.ArgsOf[A](a)) }
	}
	return u
}

func untyped[A any](op *opregistry.Op[A], cases []Case[A]) []untypedCase {
	all := make([]untypedCase, len(cases))
	for i, c := range cases {
		all[i] = untypedCase{c.Name, func(s *Stage) opregistry.Call {
			a := c.Make(s)
			return op.At(&a)
		}}
	}
	return all
}

// runner is one run of a suite.
type runner struct {
	*Suite
	cfg          *config
	impl, oracle runFunc
	serial, many *opregistry.Exec
	served       []untypedCase
	declined     int
}

// run returns how many cases the impl passed and how many it declined.
func (s *Suite) run(t T, impl, oracle opregistry.Impl, cfg *config) (served, declined int) {
	t.Helper()
	if impl.Determinism != opregistry.DeterminismUndeclared {
		held := *cfg
		held.irreproducible, cfg = false, &held
	}
	r := &runner{
		Suite: s, cfg: cfg, impl: function(t, s.op, impl), oracle: function(t, s.op, oracle),
		serial: opregistry.NewExec(nil, 0), many: opregistry.NewExec(scattered{}, 0),
	}
	for _, d := range cfg.dtypes {
		for _, c := range s.cases(d) {
			r.run(t, d.String()+"/"+c.Name, func(t T) { r.check(t, d, c) })
		}
	}
	if len(r.served) > 0 {
		r.run(t, "at_the_same_time", r.together)
	}
	return len(r.served), r.declined
}

func (r *runner) run(t T, name string, f func(T)) {
	t.Helper()
	if r.cfg.progress != nil {
		r.cfg.progress(name)
	}
	t.Run(name, f)
}

// runFunc runs an impl.
type runFunc func(*opregistry.Exec, opregistry.Call) error

// function returns the function that runs an impl. It declines the calls that the impl's Support
// rules out.
func function(t tensortest.TB, op opregistry.Handle, impl opregistry.Impl) runFunc {
	t.Helper()
	if err := opregistry.CheckRun(op, impl.Run); err != nil {
		t.Fatalf("opstest: op %q: impl %q: %v", op.Name(), impl.ID, err)
	}
	return func(x *opregistry.Exec, a opregistry.Call) error {
		if err := a.Served(&impl.Support); err != nil {
			return err
		}
		return a.Run(impl.Run, x)
	}
}

// staged is a call whose operands are ready.
type staged struct {
	stage    *Stage
	args     opregistry.Call
	operands []opregistry.Operand
	before   [][]byte // by operand
}

func (r *runner) stage(t tensortest.TB, c untypedCase) *staged {
	t.Helper()
	s := &Stage{T: t}
	call := &staged{stage: s, args: c.Make(s)}
	if err := call.args.Validate(); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	call.operands = call.args.Operands()
	return call
}

// check runs one case.
func (r *runner) check(t T, d tensor.DType, c untypedCase) {
	want := r.stage(t, c)
	if err := r.oracle(r.serial, want.args); err != nil {
		if r.cfg.partialOracle && errors.Is(err, opregistry.ErrUnsupported) {
			t.Skipf("not judged: the oracle: %v", err)
		}
		t.Fatalf("opstest: the oracle: %v", err)
	}
	got, err := r.call(t, c, r.serial)
	if err != nil {
		r.declined++
		if slices.Contains(r.cfg.mustServe, d) && contiguous(want.operands) {
			t.Fatalf("opstest: declined a case that it must serve: %v", err)
		}
		t.Skipf("declined: %v", err)
	}
	r.compare(t, want, got)
	again, err := r.call(t, c, r.many)
	if err != nil {
		t.Fatalf("opstest: declined with %d workers what it had served with one: %v", scatteredWorkers, err)
	}
	if r.cfg.irreproducible {
		r.compare(t, want, again)
	} else {
		r.same(t, got, again, "with one worker and with several")
	}
	if !t.Failed() {
		r.served = append(r.served, c)
	}
}

// call makes the operands of a case, runs the impl and checks everything that needs no oracle. The
// error is that of a declined call.
func (r *runner) call(t tensortest.TB, c untypedCase, x *opregistry.Exec) (*staged, error) {
	t.Helper()
	call, err := r.ready(t, c)
	if err != nil {
		return nil, err
	}
	err = r.guard(x, call.args)
	r.inspect(t, call, err)
	if err != nil && !errors.Is(err, opregistry.ErrUnsupported) {
		t.Fatalf("opstest: the impl failed: %v", err)
	}
	return call, err
}

// ready makes the operands of a case for the impl under test and remembers their content. The error
// is that of a forward impl that declined.
func (r *runner) ready(t tensortest.TB, c untypedCase) (*staged, error) {
	t.Helper()
	call := r.stage(t, c)
	if r.refresh != nil && r.cfg.forward != nil {
		if err := r.refresh(t, r.serial, call.args, *r.cfg.forward); err != nil {
			return nil, fmt.Errorf("the forward impl: %w", err)
		}
	}
	for _, o := range call.operands {
		call.before = append(call.before, tensortest.Bytes(o.Tensor))
	}
	return call, nil
}

// guard runs the impl and turns a panic into an error.
func (r *runner) guard(x *opregistry.Exec, a opregistry.Call) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return r.impl(x, a)
}

// inspect checks that a call changed only what it may write, and nothing when it declined.
func (r *runner) inspect(t tensortest.TB, call *staged, err error) {
	t.Helper()
	declined := errors.Is(err, opregistry.ErrUnsupported)
	for i, o := range call.operands {
		if !declined && (o.Access != opregistry.AccessRead || aliased(call.operands, i)) {
			continue
		}
		if !bytes.Equal(call.before[i], tensortest.Bytes(o.Tensor)) {
			if declined {
				t.Errorf("opstest: operand %q was written to before the impl declined", o.Name)
			} else {
				t.Errorf("opstest: operand %q was written to, although the op only reads it", o.Name)
			}
		}
	}
	call.stage.intact(t)
}

// aliased reports whether operand i, which is read, shares memory with one that is written.
func aliased(operands []opregistry.Operand, i int) bool {
	return slices.ContainsFunc(operands, func(o opregistry.Operand) bool {
		return o.Access != opregistry.AccessRead && tensor.Overlap(o.Tensor, operands[i].Tensor)
	})
}

func (r *runner) compare(t tensortest.TB, want, got *staged) {
	t.Helper()
	wanted, operands := want.operands, got.operands
	if r.values != nil {
		wanted, operands = r.values(want.args), r.values(got.args)
	}
	for i, o := range operands {
		if o.Access == opregistry.AccessRead {
			continue
		}
		tol := r.cfg.tolerance(r.op, o.Tensor.DType())
		if !tensortest.Close(t, wanted[i].Tensor, o.Tensor, tol) || r.bitwise && !bytes.Equal(tensortest.Bytes(wanted[i].Tensor), tensortest.Bytes(o.Tensor)) {
			t.Errorf("opstest: operand %q is not what the oracle computes", o.Name)
		}
	}
}

// same requires equal results bit for bit.
func (r *runner) same(t tensortest.TB, one, other *staged, when string) {
	t.Helper()
	for i, o := range one.operands {
		if o.Access != opregistry.AccessRead && !bytes.Equal(tensortest.Bytes(o.Tensor), tensortest.Bytes(other.operands[i].Tensor)) {
			t.Errorf("opstest: operand %q differs %s", o.Name, when)
		}
	}
}

// together runs cases from several goroutines on one Exec.
func (r *runner) together(t T) {
	const callers, rounds = 4, 8
	step := max(1, len(r.served)/rounds)
	for i := 0; i < len(r.served); i += step {
		c := r.served[i]
		alone, err := r.call(t, c, r.serial)
		if err != nil {
			t.Fatalf("opstest: %s: declined what it had served: %v", c.Name, err)
		}
		calls := make([]*staged, callers)
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for k := range calls {
			if calls[k], err = r.ready(t, c); err != nil {
				t.Fatalf("opstest: %s: declined what it had served: %v", c.Name, err)
			}
		}
		for k := range calls {
			wg.Go(func() { errs[k] = r.guard(r.many, calls[k].args) })
		}
		wg.Wait()
		for k, call := range calls {
			if errs[k] != nil {
				t.Fatalf("opstest: %s: failed beside other calls: %v", c.Name, errs[k])
			}
			r.inspect(t, call, nil)
			if r.cfg.irreproducible {
				r.compare(t, alone, call)
			} else {
				r.same(t, alone, call, "alone and beside other calls")
			}
		}
	}
}

func contiguous(operands []opregistry.Operand) bool {
	return !slices.ContainsFunc(operands, func(o opregistry.Operand) bool { return !o.Tensor.IsContiguous() })
}
