package opmanager

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// VerifySettings say which calls run a second time, on copies of the operands, on
// the reference, so that the results can be compared. The zero value verifies
// nothing and costs nothing.
type VerifySettings struct {
	// Fraction of the calls of each bound handle, from 0 to 1. The first call is
	// always among them.
	Fraction float64
	// Ops are patterns of the ops that are verified; nil means all.
	Ops []string
	// Quarantine counts a violation as a failure that opens a quarantine at once.
	Quarantine bool
}

func (v *VerifySettings) covers(op string) bool {
	return v.Fraction > 0 && (v.Ops == nil || slices.ContainsFunc(v.Ops, func(p string) bool { return matchPattern(p, op) }))
}

// sampled reports whether call number n, counted from 1, is verified.
func (v *VerifySettings) sampled(n uint64) bool {
	return math.Ceil(float64(n)*v.Fraction) > math.Ceil(float64(n-1)*v.Fraction)
}

// VerifyStats is what verification found about an impl of an op.
type VerifyStats struct {
	Calls      uint64  `json:"calls"`      // compared with the reference
	Violations uint64  `json:"violations"` // beyond the tolerance, or writes to operands that the call may not write
	Skipped    uint64  `json:"skipped"`    // sampled, but the reference declined or cannot read the operands
	NaNs       uint64  `json:"nans"`       // elements that are NaN on one side only
	MaxAbs     float64 `json:"max_abs"`    // largest |impl - reference|
	MaxRel     float64 `json:"max_rel"`    // largest |impl - reference| / |reference|
	MaxULP     uint64  `json:"max_ulp"`    // largest distance in representable values
}

type verifyCounters struct {
	mu  sync.Mutex
	now VerifyStats
}

func (c *verifyCounters) stats() VerifyStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *verifyCounters) skip() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Skipped++
}

func (c *verifyCounters) add(diffs []tensor.Difference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Calls++
	for _, d := range diffs {
		c.now.NaNs += uint64(d.NaNs)
		c.now.MaxAbs, c.now.MaxRel = max(c.now.MaxAbs, d.MaxAbs), max(c.now.MaxRel, d.MaxRel)
		c.now.MaxULP = max(c.now.MaxULP, d.MaxULP)
	}
}

func (c *verifyCounters) violated() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Violations++
}

// shadow is a sampled call as it was before an impl ran.
type shadow[A any] struct {
	oracle *opregistry.Entry
	args   A
	err    error // why the arguments could not be copied
}

// shadow copies the operands of a call that is to be verified; it returns nil for
// every other call.
func (b *Bound[A]) shadow(t *table, a A) *shadow[A] {
	if !t.policy.Verify.covers(b.op.Name()) || !t.policy.Verify.sampled(b.verifiable.Add(1)) {
		return nil
	}
	s := &shadow[A]{oracle: oracleOf(t, b.index)}
	s.args, s.err = copyArgs(b.op, a)
	return s
}

// oracleOf returns the reference of an op whether the policy allows it or not.
func oracleOf(t *table, op int) *opregistry.Entry {
	entries := t.registry.Impls(op)
	for i := range entries {
		if e := &entries[i]; e.Kind == opregistry.KindReference && t.available[e.Number] == "" {
			return e
		}
	}
	return nil
}

// verify runs the reference on a shadow and compares what it wrote with what an
// impl wrote, after it has looked whether the impl wrote to what is only read.
func (b *Bound[A]) verify(t *table, used *candidate, s *shadow[A], a A) {
	if s.oracle != nil && s.oracle.ID == used.info.ID {
		return
	}
	if s.err == nil {
		if name := b.trespass(s, a, false); name != "" {
			used.counters.verify.add(nil)
			b.violated(t, used, &VerificationFailed{Op: b.op.Name(), Impl: used.info, Operand: name, Trespass: "was written to, it is only to be read"})
			return
		}
	}
	if s.oracle == nil || s.err != nil || b.runOracle(s) != nil {
		used.counters.verify.skip()
		return
	}
	var (
		diffs []tensor.Difference
		worst *VerificationFailed
	)
	want := b.op.Operands(s.args)
	for i, got := range b.op.Operands(a) {
		if got.Access == opregistry.AccessRead {
			continue
		}
		values := want[i].Tensor.Float64s()
		tol := tolerance(b.op.Name(), got.Tensor.DType(), values)
		d, err := tensor.Compare(values, got.Tensor, tol)
		if err != nil {
			used.counters.verify.skip()
			return
		}
		diffs = append(diffs, d)
		if d.Beyond > 0 && (worst == nil || d.MaxAbs > worst.MaxAbs) {
			worst = &VerificationFailed{Op: b.op.Name(), Impl: used.info, Operand: got.Name, Difference: d, Tolerance: tol}
		}
	}
	used.counters.verify.add(diffs)
	if worst != nil {
		b.violated(t, used, worst)
	}
}

// runOracle runs the reference and turns a panic into an error.
func (b *Bound[A]) runOracle(s *shadow[A]) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(b.op.Name(), s.oracle.ID, cause)
		}
	}()
	return s.oracle.Run.(opregistry.Func[A])(b.exec, s.args)
}

// Bounds for ops that are not of the catalogue.
var (
	wideTolerance   = tensor.Tolerance{Abs: 1e-4, Rel: 1e-4}
	narrowTolerance = tensor.Tolerance{Abs: 2e-4, Rel: 2e-4, ULP: 2}
)

// tolerance returns the bound for an operand. That of the catalogue is for values
// of magnitude 1, so its absolute part is scaled by the largest expected value.
func tolerance(op string, d tensor.DType, want []float64) tensor.Tolerance {
	tol, reason := ops.Tolerance(op, d)
	switch {
	case reason != "" || !d.IsFloat():
	case d == tensor.F32 || d == tensor.F64:
		tol = wideTolerance
	default:
		tol = narrowTolerance
	}
	largest := 0.0
	for _, v := range want {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	tol.Abs *= largest
	return tol
}

// Error describes the violation: what was compared and how far it is off, or what was written to.
func (e *VerificationFailed) Error() string {
	if e.Trespass != "" {
		return fmt.Sprintf("operand %q %s", e.Operand, e.Trespass)
	}
	return fmt.Sprintf("operand %q is not what the reference computes: %d of %d elements beyond %v; worst %v", e.Operand, e.Beyond, e.Elements, e.Tolerance, e.Worst)
}
