package opstest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"runtime/debug"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Case is one call of an op.
type Case[A any] struct {
	Name string
	Make func(*Stage) A

	// Terms is the number of terms of the longest sum of the call, if it is more than what the
	// tolerance of the op is for; each term is at most 1.
	Terms int

	// Work is about how many operations the call has, if the op does not say it with its parts and
	// they are more than its operands have elements.
	Work float64
}

// Invariant is a number that follows from the operands of a call and from its results.
type Invariant struct {
	Name             string
	Want, Got, Bound float64
}

// Spec describes how one op is tested. Its method untyped makes it part of a Kit.
type Spec[A any] struct {
	Op *opregistry.Op[A]

	// Cases returns the calls with operands of one storage dtype.
	Cases func(tensor.DType) []Case[A]

	// Refresh overwrites the saved state in the operands of a backward call by running a forward
	// impl. It returns that impl's error if it declines. Nil for other ops.
	Refresh func(tensortest.TB, *opregistry.Exec, A, opregistry.Impl) error

	// Models returns calls of the sizes that models have, with operands of one storage dtype: by
	// default with one length as in a model and small ones beside it, or whole. Nil for an op whose
	// calls do not depend on the model.
	Models func(d tensor.DType, whole bool) []Case[A]

	// Invariants returns what the result must satisfy of a call of which only some parts are compared,
	// because the oracle would take too long for all of it.
	Invariants func(A) []Invariant

	// Values returns what is compared with the oracle instead of the written operands, for ops
	// whose single operands have no meaning on their own. Nil for most ops.
	Values func(A) []opregistry.Operand

	// Bitwise requires the oracle's bits: the op copies patterns, including those of NaN.
	Bitwise bool

	// Squares says that results are roots of sums of squares, which may be 0 for subnormal numbers.
	Squares bool
}

// Suite is a suite whose calls do not have the type of their arguments, so that the code that runs
// a suite is compiled once and not for each op.
type Suite struct {
	op      opregistry.Handle
	cases   func(tensor.DType) []untypedCase
	models  func(d tensor.DType, whole bool) []untypedCase
	refresh func(tensortest.TB, *opregistry.Exec, opregistry.Call, opregistry.Impl) error
	values  func(opregistry.Call) []opregistry.Operand
	bitwise bool
	squares bool

	invariants func(opregistry.Call) []Invariant
}

// untypedCase is a Case whose arguments are known as a call only.
type untypedCase struct {
	Name     string
	Make     func(*Stage) opregistry.Call
	Terms    int
	Work     float64
	dtype    tensor.DType
	model    bool // it has sizes of a model
	recorded bool // it has the operands that a program had
}

func (s Spec[A]) Suite() *Suite {
	u := &Suite{op: s.Op, bitwise: s.Bitwise, squares: s.Squares, cases: func(d tensor.DType) []untypedCase { return untyped(s.Op, s.Cases(d)) }}
	if refresh := s.Refresh; refresh != nil {
		u.refresh = func(t tensortest.TB, x *opregistry.Exec, a opregistry.Call, forward opregistry.Impl) error {
			return refresh(t, x, *opregistry.ArgsOf[A](a), forward)
		}
	}
	u.models = func(tensor.DType, bool) []untypedCase { return nil }
	if models := s.Models; models != nil {
		u.models = func(d tensor.DType, whole bool) []untypedCase { return untyped(s.Op, models(d, whole)) }
	}
	if invariants := s.Invariants; invariants != nil {
		u.invariants = func(a opregistry.Call) []Invariant { return invariants(*opregistry.ArgsOf[A](a)) }
	}
	if values := s.Values; values != nil {
		u.values = func(a opregistry.Call) []opregistry.Operand { return values(*opregistry.ArgsOf[A](a)) }
	}
	return u
}

func untyped[A any](op *opregistry.Op[A], cases []Case[A]) []untypedCase {
	all := make([]untypedCase, len(cases))
	for i, c := range cases {
		all[i] = untypedCase{Name: c.Name, Terms: c.Terms, Work: c.Work, Make: func(s *Stage) opregistry.Call {
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
	declared     bool           // the impl declares that equal operands give equal bits, wherever they lie
	sampled      int            // cases of which parts and invariants were compared
	flushes      []tensor.DType // for which the impl declares that it takes subnormal numbers as 0

	waited bool // for an impl that writes after it has returned

	long  map[string]bool // axes of operands that had a long and odd length in a case
	large bool            // a result of a call of a model had many elements
}

// run runs all cases of the dtypes that are configured.
func (s *Suite) run(t T, impl, oracle opregistry.Impl, cfg *config) *runner {
	t.Helper()
	declared := impl.Determinism != opregistry.DeterminismUndeclared
	if declared {
		held := *cfg
		held.irreproducible, cfg = false, &held
	}
	r := &runner{
		Suite: s, cfg: cfg, impl: function(t, s.op, impl), oracle: function(t, s.op, oracle),
		serial: opregistry.NewExec(nil, 0), many: opregistry.NewExec(scattered{}, 0), declared: declared,
		flushes: impl.FlushesSubnormals, long: map[string]bool{},
	}
	dirty(r.serial)
	dirty(r.many)
	for _, d := range cfg.dtypes {
		for _, c := range r.chosen(d) {
			r.run(t, d.String()+"/"+c.Name, func(t T) { r.check(t, d, c) })
		}
		r.hunt(t, d)
		r.vary(t, d)
	}
	if len(r.served) > 0 {
		r.run(t, "at_the_same_time", r.together)
	}
	return r
}

// chosen returns the cases of a dtype.
func (r *runner) chosen(d tensor.DType) []untypedCase {
	cases, models := r.cases(d), r.models(d, r.cfg.thorough)
	if n := r.cfg.sample; n > 0 {
		cases = r.sampleOf(cases, n)
		if d != tensor.F32 && d != tensor.BF16 {
			models = nil
		}
		models = r.sampleOf(models, 1)
	}
	cases = slices.Concat(cases, models)
	for i := range cases {
		cases[i].dtype = d
		cases[i].model = i >= len(cases)-len(models)
	}
	return append(cases, r.recorded(d)...)
}

// sampleOf returns n cases that the seed and the op choose.
func (r *runner) sampleOf(cases []untypedCase, n int) []untypedCase {
	if n >= len(cases) {
		return cases
	}
	h := fnv.New64a()
	fmt.Fprint(h, r.cfg.seed, r.op.Name())
	first := int(h.Sum64() % uint64(len(cases)))
	var some []untypedCase
	for i := range spread(len(cases)) {
		if len(some) == n {
			break
		}
		some = append(some, cases[(first+i)%len(cases)])
	}
	return some
}

// run runs a part of the test, unless an earlier one has failed and that is enough.
func (r *runner) run(t T, name string, f func(T)) {
	t.Helper()
	if r.cfg.untilFailure && t.Failed() {
		return
	}
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
	stage     *Stage
	args      opregistry.Call
	operands  []opregistry.Operand
	before    [][]byte // by operand
	terms     int
	infinite  bool // an operand was given an infinity
	subnormal bool // an operand was given subnormal numbers only
	recorded  bool // the tolerance is that for results near 1, times the largest result
	magnitude float64
	far       bool
	moves     []float64 // see condition
}

// roundingsOnTheWay is how much farther than a rounding of each operand the roundings of sums,
// which have many terms, move results.
const roundingsOnTheWay = 64

func (r *runner) stage(t tensortest.TB, c untypedCase, with setting) *staged {
	t.Helper()
	s := &Stage{T: t, Seed: with.seed, place: with.place, axis: with.axis, padded: with.padded, limit: with.limit, outline: with.outline}
	call := &staged{stage: s, args: c.Make(s), terms: c.Terms, infinite: with.infinite, subnormal: with.subnormal, recorded: c.recorded, magnitude: with.magnitude, far: with.far}
	if with.scaled != 0 && r.changeable() {
		call.args = scaled(call.args, r.op, with.scaled)
	}
	if with.edit != nil {
		call.edit(t, with)
	}
	if with.change != nil {
		call.args = with.change(t, s, call.args)
	}
	if err := call.args.Validate(); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	call.operands = call.args.Operands()
	return call
}

// edit changes an element of the largest operand that is only read.
func (call *staged) edit(t tensortest.TB, with setting) {
	t.Helper()
	largest := call.largestRead()
	if largest == nil || largest.NumElements() == 0 {
		return
	}
	v := largest.Float64s()
	at := len(v) - 1
	if with.at != nil {
		at = with.at(len(v))
	}
	v[at] = with.edit(v[at])
	call.stage.Fill(largest, v)
}

// largestRead returns the largest operand of numbers that is only read, nil if there is none.
func (call *staged) largestRead() (largest *tensor.Tensor) {
	for _, o := range call.args.Operands() {
		if x := o.Tensor; o.Access == opregistry.AccessRead && x.DType().IsFloat() && x.DType().Size() > 1 && (largest == nil || x.NumElements() > largest.NumElements()) {
			largest = x
		}
	}
	return largest
}

// check runs one case: with one worker, and with several on operands that lie elsewhere and hold
// other bytes before they are written.
func (r *runner) check(t T, d tensor.DType, c untypedCase) {
	with := setting{}
	if c.recorded { // the impl that wrote the saved state is another one
		with.change = func(_ tensortest.TB, _ *Stage, a opregistry.Call) opregistry.Call { return a }
	}
	want := r.stage(t, c, with)
	parts := want.args.Parts()
	c.Work = max(c.Work, parts.Work*float64(parts.N))
	sampled := parts.At != nil && c.Work > maxWork
	if sampled {
		r.adopt(want)
	} else {
		r.expect(t, want, with)
	}
	got, err := r.call(t, c, r.serial, with)
	if err != nil {
		r.declined++
		if slices.Contains(r.cfg.mustServe, d) && contiguous(want.operands) {
			t.Fatalf("opstest: declined a case that it must serve: %v", err)
		}
		t.Skipf("declined: %v", err)
	}
	if sampled {
		r.sampled++
		r.compareParts(t, want, got)
	} else {
		r.compare(t, want, got)
	}
	if with.place = elsewhere; !r.declared {
		with.place.Shift = 0
	}
	again, err := r.call(t, c, r.many, with)
	switch {
	case err != nil:
		t.Fatalf("opstest: declined with %d workers what it had served with one: %v", scatteredWorkers, err)
	case !r.cfg.irreproducible:
		r.same(t, got, again, "with one worker and with several, or when operands lie elsewhere or hold something else before they are written")
	case sampled:
		r.compareParts(t, want, again)
	default:
		r.compare(t, want, again)
	}
	if !t.Failed() {
		r.served = append(r.served, c)
		r.large = r.large || c.model && slices.ContainsFunc(got.operands, func(o opregistry.Operand) bool {
			return o.Access != opregistry.AccessRead && o.Tensor.NumElements() >= largeElements
		})
	}
}

// expect lets the oracle compute a call. It ends the case when the oracle cannot.
func (r *runner) expect(t T, call *staged, with setting) {
	t.Helper()
	err := r.wanted(call, with)
	if err != nil && r.cfg.partialOracle && errors.Is(err, opregistry.ErrUnsupported) {
		t.Skipf("not judged: the oracle: %v", err)
	}
	if err != nil {
		t.Fatalf("opstest: the oracle: %v", err)
	}
}

// call makes the operands of a case, runs the impl and checks everything that needs no oracle. The
// error is that of a declined call.
func (r *runner) call(t tensortest.TB, c untypedCase, x *opregistry.Exec, with setting) (*staged, error) {
	t.Helper()
	call, err := r.ready(t, c, with)
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
func (r *runner) ready(t tensortest.TB, c untypedCase, with setting) (*staged, error) {
	t.Helper()
	call := r.stage(t, c, with)
	if err := r.save(t, call, with); err != nil {
		return nil, fmt.Errorf("the forward impl: %w", err)
	}
	call.remember()
	return call, nil
}

// save lets the forward impl save its state for the impl under test. It returns the error of one
// that declines.
func (r *runner) save(t tensortest.TB, call *staged, with setting) error {
	t.Helper()
	forward := r.cfg.forward
	if forward == nil && with.changed() {
		forward = r.cfg.oracleForward
	}
	if r.refresh == nil || forward == nil {
		return nil
	}
	return r.refresh(t, r.serial, call.args, *forward)
}

// changeable reports whether a rule may change operands that the forward op has read.
func (r *runner) changeable() bool { return r.refresh == nil || r.cfg.oracleForward != nil }

// wanted lets the oracle compute a call that was made, from the state that its forward impl saves
// if a rule has changed what that reads.
func (r *runner) wanted(call *staged, with setting) (err error) {
	if with.changed() {
		defer func() {
			if cause := recover(); cause != nil { // the rule has made operands that do not fit each other
				err = fmt.Errorf("panic: %v", cause)
			}
		}()
	}
	if r.refresh != nil && with.changed() && r.cfg.oracleForward != nil {
		fault := faultOf(func(t T) { err = r.refresh(t, r.serial, call.args, *r.cfg.oracleForward) })
		if fault != "" {
			err = errors.New(fault) // the rule has made a call that the forward op does not allow
		}
		if err != nil {
			return err
		}
	}
	r.adopt(call)
	return r.oracle(r.serial, call.args)
}

// adopt gives the oracle what the forward impl has saved in a narrow dtype, where that is the exact
// value or the number beside it. A value in the middle of two numbers may be rounded to both, and a
// gradient shows which: dQ has the rounding of O times dO and the mean of K.
func (r *runner) adopt(call *staged) {
	if r.refresh == nil || r.cfg.forward == nil {
		return
	}
	exact := make([][]float64, len(call.operands))
	for i, o := range call.operands {
		if o.Access == opregistry.AccessRead {
			exact[i] = o.Tensor.Float64s()
		}
	}
	served := r.serves(call, *r.cfg.forward)
	for i, o := range call.operands {
		if o.Access != opregistry.AccessRead {
			continue
		}
		unit, _ := narrow(o.Tensor.DType())
		saved, differs := o.Tensor.Float64s(), false
		for k, v := range saved {
			if w := exact[i][k]; v != w && (!served || !(math.Abs(v-w) <= 2*unit*powerBelow(w))) {
				saved[k], differs = w, true
			}
		}
		if differs {
			call.stage.Fill(o.Tensor, saved)
		}
	}
}

// serves lets a forward impl save its state for a call, and reports whether it did.
func (r *runner) serves(call *staged, forward opregistry.Impl) (ok bool) {
	defer func() {
		if recover() != nil { // save meets it again
			ok = false
		}
	}()
	var err error
	return faultOf(func(t T) { err = r.refresh(t, r.serial, call.args, forward) }) == "" && err == nil
}

// remember keeps the content of the operands.
func (call *staged) remember() {
	call.before = nil
	for _, o := range call.operands {
		call.before = append(call.before, tensortest.Bytes(o.Tensor))
	}
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
	wanted, operands := r.compared(want), r.compared(got)
	for i, o := range operands {
		if o.Access == opregistry.AccessRead {
			continue
		}
		scale, returned := want.scale(wanted[i].Tensor), tensortest.Bytes(o.Tensor)
		tol := r.tolerance(o.Tensor.DType(), want.terms, scale)
		if (want.subnormal || want.magnitude != 0) && !o.Tensor.DType().IsFloat() {
			continue // numbers that are equal in f32 may be compared in another order
		}
		if want.subnormal { // the values on the way to a result have few digits
			tol.Abs, tol.Rel = max(tol.Abs, subnormals[o.Tensor.DType()].visible), max(tol.Rel, 0x1p-6)
		}
		tol = r.wide(tol, want, wanted[i].Tensor)
		if want.moves != nil {
			tol.Abs = max(tol.Abs, roundingsOnTheWay*want.moves[i])
		}
		expected := wanted[i].Tensor.Float64s()
		if want.infinite && !r.bitwise {
			undetermined(expected, o.Tensor.Float64s())
		}
		if want.magnitude != 0 {
			overflown(expected, o.Tensor.Float64s())
		}
		if !tensortest.CloseTo(t, expected, o.Tensor, tol) || r.bitwise && !bytes.Equal(tensortest.Bytes(wanted[i].Tensor), tensortest.Bytes(o.Tensor)) {
			t.Errorf("opstest: operand %q is not what the oracle computes", o.Name)
			if r.writesLate(o.Tensor, returned) {
				t.Errorf("opstest: operand %q was written to after the impl had returned: it puts work off", o.Name)
			}
		} else if text := want.flushed(expected, o.Tensor); text != "" {
			t.Errorf("opstest: operand %q is not what the oracle computes: %s", o.Name, text)
		} else if text := bias(wanted[i].Tensor, o.Tensor, r.tolerance(tensor.F32, want.terms, scale)); text != "" && !want.subnormal && want.magnitude == 0 && !r.cfg.loose(o.Tensor.DType()) {
			t.Errorf("opstest: operand %q is off on average: %s", o.Name, text)
		}
	}
}

// undetermined takes NaN for an infinity that is wanted, and an infinity for NaN: which of them a
// sum or a product of several numbers gives depends on the order of its operations.
func undetermined(want, got []float64) {
	for i, w := range want {
		g := got[i]
		if math.IsNaN(w) && math.IsInf(g, 0) || math.IsInf(w, 0) && math.IsNaN(g) {
			want[i] = g
		}
	}
}

// scale returns what an absolute tolerance is multiplied with: 1, or the largest of the results
// that are wanted of a recorded call.
func (call *staged) scale(want *tensor.Tensor) float64 {
	if !call.recorded || !want.DType().IsFloat() {
		return 1
	}
	largest := 0.0
	for _, v := range want.Float64s() {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	return largest
}

// tolerance returns the bound for a written operand of dtype d that has sums of so many terms.
func (r *runner) tolerance(d tensor.DType, terms int, scale float64) tensor.Tolerance {
	tol := r.cfg.tolerance(r.op, d)
	if terms > 0 && d.IsFloat() {
		// A sum of n terms up to 1 in f32 passes values near √n on its way; n roundings of those to
		// 2⁻²⁴ add up to about n·2⁻²⁶, and the largest of a million such errors is five times that.
		abs := float64(terms) * 0x1p-23
		if d != tensor.F32 && d != tensor.F64 {
			abs *= 2
		}
		tol.Abs = max(tol.Abs, abs)
	}
	tol.Abs *= scale
	return tol
}

// same requires equal results bit for bit. What neither call wrote, because the op leaves it alone,
// may differ: it was compared with the oracle.
func (r *runner) same(t tensortest.TB, one, other *staged, when string) {
	t.Helper()
	for i, o := range one.operands {
		if o.Access == opregistry.AccessRead || one.untouched(i) && other.untouched(i) {
			continue
		}
		if !bytes.Equal(packed(t, o.Tensor), packed(t, other.operands[i].Tensor)) {
			t.Errorf("opstest: operand %q differs %s", o.Name, when)
		}
	}
}

// untouched reports whether an operand holds what it held before the call.
func (call *staged) untouched(i int) bool {
	return bytes.Equal(call.before[i], tensortest.Bytes(call.operands[i].Tensor))
}

// packed returns the bytes of the elements without gaps.
func packed(t tensortest.TB, x *tensor.Tensor) []byte {
	t.Helper()
	if x.IsContiguous() {
		return tensortest.Bytes(x)
	}
	dense, _ := tensortest.Guarded(t, x.DType(), x.Shape()...)
	if err := dense.CopyFrom(x); err != nil {
		t.Fatalf("opstest: %v", err)
	}
	return tensortest.Bytes(dense)
}

func contiguous(operands []opregistry.Operand) bool {
	return !slices.ContainsFunc(operands, func(o opregistry.Operand) bool { return !o.Tensor.IsContiguous() })
}
