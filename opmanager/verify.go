package opmanager

import (
	"fmt"
	"math"
	"sync"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// VerifyStats are the results of verifying calls of an op that an impl served.
type VerifyStats struct {
	Calls      uint64  `json:"calls"`      // calls that were compared with the reference
	Violations uint64  `json:"violations"` // results beyond the tolerance, and writes to operands that the impl may not write
	Skipped    uint64  `json:"skipped"`    // sampled calls that the reference declined or whose operands cannot be read
	NaNs       uint64  `json:"nans"`       // elements that are NaN in one of the results only
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

// sampledCall holds the arguments of a call that is to be verified, as they were before an impl
// ran.
type sampledCall struct {
	oracle *opregistry.Entry
	args   opregistry.Call
	err    error // why the arguments could not be copied
}

// sample copies the arguments of a call that is to be verified. It returns nil for other calls.
func (b *binding) sample(t *table, a opregistry.Call) *sampledCall {
	if !t.policy.Verify.Covers(b.name) || !t.policy.Verify.Sampled(b.verifiable.Add(1)) {
		return nil
	}
	s := &sampledCall{oracle: oracleOf(t, b.index)}
	s.args, s.err = argcopy.Args(a)
	return s
}

// oracleOf returns the reference impl of an op, even if the policy leaves it out.
func oracleOf(t *table, op int) *opregistry.Entry {
	entries := t.registry.Impls(op)
	for i := range entries {
		if e := &entries[i]; e.Kind == opregistry.KindReference && t.unavailable[e.Number] == "" {
			return e
		}
	}
	return nil
}

// verify compares the results of an impl with those of the reference. It first checks that the impl
// did not write to operands that the op only reads.
func (b *binding) verify(t *table, used *candidate, s *sampledCall, a opregistry.Call) {
	if s.oracle != nil && s.oracle.ID == used.info.ID {
		return
	}
	if s.err == nil {
		if name := unexpectedWrite(s, a, false); name != "" {
			used.counters.verify.add(nil)
			b.violated(t, used, &VerificationFailed{Op: b.name, Impl: used.info, Operand: name, UnexpectedWrite: "was written to, although the op only reads it"})
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
	want := s.args.Operands()
	for i, got := range a.Operands() {
		if got.Access == opregistry.AccessRead {
			continue
		}
		values := want[i].Tensor.Float64s()
		tol := Tolerance(b.handle, got.Tensor.DType(), values)
		d, err := tensor.Compare(values, got.Tensor, tol)
		if err != nil {
			used.counters.verify.skip()
			return
		}
		diffs = append(diffs, d)
		if d.Beyond > 0 && (worst == nil || d.MaxAbs > worst.MaxAbs) {
			worst = &VerificationFailed{Op: b.name, Impl: used.info, Operand: got.Name, Difference: d, Tolerance: tol}
		}
	}
	used.counters.verify.add(diffs)
	if worst != nil {
		b.violated(t, used, worst)
	}
}

// runOracle runs the reference and returns a panic as an error.
func (b *binding) runOracle(s *sampledCall) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(b.name, s.oracle.ID, cause)
		}
	}()
	return s.args.Run(s.oracle.Run, b.exec)
}

// Tolerances for ops that declare none.
var (
	wideTolerance   = tensor.Tolerance{Abs: 1e-4, Rel: 1e-4}
	narrowTolerance = tensor.Tolerance{Abs: 2e-4, Rel: 2e-4, ULP: 2}
)

// Tolerance returns how far an operand that an op writes may be from the expected values. The
// tolerance of an op is for values of magnitude 1, so its absolute part is scaled by the largest
// expected value.
func Tolerance(op opregistry.Handle, d tensor.DType, want []float64) tensor.Tolerance {
	declared := op.Tolerance()
	tol := declared.Of(d)
	switch {
	case declared.Reason != "" || !d.IsFloat():
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

// Error describes the violation.
func (e *VerificationFailed) Error() string {
	if e.UnexpectedWrite != "" {
		return fmt.Sprintf("operand %q %s", e.Operand, e.UnexpectedWrite)
	}
	return fmt.Sprintf("operand %q differs from the result of the reference: %d of %d elements beyond %v; worst %v", e.Operand, e.Beyond, e.Elements, e.Tolerance, e.Worst)
}
