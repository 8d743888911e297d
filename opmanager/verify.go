package opmanager

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// VerifyStats are the results of verifying calls of an op that an impl served.
type VerifyStats struct {
	Calls      uint64  `json:"calls"`                // calls that were compared with the reference
	Violations uint64  `json:"violations"`           // results beyond the tolerance, and writes to operands that the impl may not write
	Skipped    uint64  `json:"skipped"`              // calls that could not be compared
	Why        string  `json:"skipped_why,omitzero"` // the last of them could not be
	Deferred   uint64  `json:"deferred,omitzero"`    // calls that were not compared because that would have taken too much of the time
	NaNs       uint64  `json:"nans"`                 // elements that are NaN in one of the results only
	MaxAbs     float64 `json:"max_abs"`              // largest |impl - reference|
	MaxRel     float64 `json:"max_rel"`              // largest |impl - reference| / |reference|
	MaxULP     uint64  `json:"max_ulp"`              // largest distance in representable values
	File       string  `json:"file,omitempty"`       // that has the last wrong call that Manager.KeepWrong kept
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

func (c *verifyCounters) skip(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Skipped++
	c.now.Why = why
}

func (c *verifyCounters) deferCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Deferred++
}

func (c *verifyCounters) compared() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Calls++
}

func (c *verifyCounters) differ(d tensor.Difference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.NaNs += uint64(d.NaNs)
	c.now.MaxAbs, c.now.MaxRel = max(c.now.MaxAbs, d.MaxAbs), max(c.now.MaxRel, d.MaxRel)
	c.now.MaxULP = max(c.now.MaxULP, d.MaxULP)
}

func (c *verifyCounters) violated(file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Violations++
	if file != "" {
		c.now.File = file
	}
}

// check is the verification of a call of an impl.
type check struct {
	schedule *schedule
	number   uint64 // of the call in the schedule
	oracle   *opregistry.Entry
	appeal   *opregistry.Entry // decides where the oracle is not the reference and says wrong; or nil
	parts    []checkedPart     // that are compared
	whole    bool              // they are one, the call itself
	saved    []savedOperand
	wrong    int    // the part that differs
	problem  string // why the call cannot be verified
}

// checkedPart is a part of a call, and a copy of it as it was before the call.
type checkedPart struct {
	call, before opregistry.Call
	results      []string // the operands that are compared; nil for all that the op writes
}

// maxCheckedWork is how many multiplications the reference does to verify a call, about.
const maxCheckedWork = 3e7

// check returns the verification of the call that an impl is about to serve, nil if it is not
// verified.
func (b *binding) check(t *table, c *candidate, a opregistry.Call) *check {
	if c.canary != nil && c.canary.active.Load() {
		return b.checkCanary(t, c, a)
	}
	if c.checks == nil {
		return nil
	}
	v := &t.policy.Verify
	s := c.checks.of(a.Signature())
	n, claimed := s.claim(v)
	switch {
	case !claimed && c.trial == nil:
		return nil
	case c.trial == nil && n > 1 && !s.suspect.Load() && v.Fraction == 0 && v.Mode == oppolicy.VerifySampled && !b.m.core.affordable():
		c.counters.verify.deferCall()
		return nil
	}
	defer b.m.core.spent(b.m.core.now())
	k := &check{schedule: s, number: n, oracle: oracleOf(t, b.index)}
	k.prepare(a)
	return k
}

// prepare chooses the parts of a call that are compared, and copies what is lost in it.
func (k *check) prepare(a opregistry.Call) {
	if k.oracle == nil {
		k.problem = "there is no reference"
		return
	}
	all := a.Parts()
	k.whole = all.Work*float64(all.N) <= maxCheckedWork || all.At == nil || k.appeal != nil
	switch {
	case all.Work > maxCheckedWork && k.appeal == nil:
		k.problem = fmt.Sprintf("it takes the reference %.2g multiplications, and at most %.2g are spent", all.Work, maxCheckedWork)
		return
	case k.whole:
		k.parts = []checkedPart{{call: a}}
	default:
		for range min(maxParts, max(1, int(maxCheckedWork/all.Work)/sampleDepth)) {
			part, results, err := all.At(rand.IntN(all.N))
			if err != nil {
				k.problem = err.Error()
				return
			}
			k.parts = append(k.parts, checkedPart{call: part, results: results})
		}
	}
	err := error(nil)
	for i := range k.parts {
		p := &k.parts[i]
		if p.before, err = argcopy.Args(p.call); err != nil {
			k.problem = err.Error()
			return
		}
	}
	if k.whole {
		return // the copy of the call has everything
	}
	if k.saved, err = protect(a.Updated()); err != nil {
		k.problem = err.Error()
	}
}

// A call of many parts takes a sampleDepth of maxCheckedWork, and at most maxParts of them are
// compared: among as many, one of a fault in 3 % of the parts is found in 19 cases of 20.
const (
	sampleDepth = 4
	maxParts    = 100
)

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

// verified compares the results of a call that an impl served with those of the reference. It
// returns an error if they are wrong and the policy does not only report that. The operands are
// then as the impl left them.
func (b *binding) verified(t *table, c *candidate, k *check) error {
	if k == nil {
		return nil
	}
	defer b.m.core.spent(b.m.core.now())
	if k.problem != "" {
		c.counters.verify.skip(k.problem)
		b.m.core.judge(b.name, c, opregistry.Unsupported("%s", k.problem))
		return nil
	}
	wrong, problem := b.compare(c, k)
	if k.appeal != nil && (wrong != nil || problem != "") {
		if all := k.parts[0].before.Parts(); all.Work*float64(all.N) <= maxCheckedWork {
			k.oracle = k.appeal
			if again, why := b.compare(c, k); why == "" {
				wrong, problem = again, ""
			}
		}
	}
	switch {
	case problem != "":
		c.counters.verify.skip(problem)
		b.m.core.judge(b.name, c, opregistry.Unsupported("%s", problem))
		return nil
	case wrong == nil:
		c.counters.verify.compared()
		k.schedule.passed.Store(k.number)
		k.schedule.suspect.Store(false)
		b.m.core.judge(b.name, c, nil)
		return nil
	}
	c.counters.verify.compared()
	return b.violated(t, c, k, wrong)
}

// compare returns the worst difference of a call from the reference, nil if there is none beyond
// the tolerance, or a problem if it cannot be compared.
func (b *binding) compare(c *candidate, k *check) (worst *VerificationFailed, problem string) {
	for n, p := range k.parts {
		if name := unexpectedWrite(p.before, p.call, false); name != "" {
			k.wrong = n
			return &VerificationFailed{Op: b.name, Impl: c.info, Operand: name, UnexpectedWrite: "was written to, although the op only reads it"}, ""
		}
	}
	for n, p := range k.parts {
		want, err := copyWritten(p.before)
		if err == nil {
			err = b.runOracle(k.oracle, want)
		}
		if err != nil {
			return worst, err.Error()
		}
		expected := want.Operands()
		for i, got := range p.call.Operands() {
			if got.Access == opregistry.AccessRead || p.results != nil && !slices.Contains(p.results, got.Name) {
				continue
			}
			values := expected[i].Tensor.Float64s()
			tol := Tolerance(b.handle, got.Tensor.DType(), values)
			d, err := tensor.Compare(values, got.Tensor, tol)
			if err == nil && d.Beyond > 0 && d.NaNs == 0 && got.Tensor.DType().IsFloat() {
				tol.Abs = max(tol.Abs, Rounding(p.before, i, values, func(a opregistry.Call) error { return b.runOracle(k.oracle, a) }))
				d, err = tensor.Compare(values, got.Tensor, tol)
			}
			if err != nil {
				return worst, err.Error()
			}
			c.counters.verify.differ(d)
			if d.Beyond > 0 && (worst == nil || d.MaxAbs > worst.MaxAbs) {
				k.wrong = n
				worst = &VerificationFailed{Op: b.name, Impl: c.info, Operand: got.Name, Difference: d, Tolerance: tol}
				if k.oracle.Kind != opregistry.KindReference {
					worst.Than = k.oracle.ID
				}
			}
		}
	}
	return worst, ""
}

// copyWritten returns a call with the same operands, but copies of those that the op writes.
func copyWritten(a opregistry.Call) (opregistry.Call, error) {
	written := map[*tensor.Tensor]bool{}
	for _, o := range a.Operands() {
		written[o.Tensor] = written[o.Tensor] || o.Access != opregistry.AccessRead
	}
	return argcopy.Replace(a, func(t *tensor.Tensor) (*tensor.Tensor, error) {
		if written[t] {
			return argcopy.Tensor(t)
		}
		return t.Reshape(t.Shape()...)
	})
}

// runOracle runs the reference and returns a panic as an error.
func (b *binding) runOracle(oracle *opregistry.Entry, a opregistry.Call) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(b.name, oracle.ID, cause)
		}
	}()
	if err := a.Served(&oracle.Support); err != nil {
		return err
	}
	return a.Run(oracle.Run, b.exec)
}

// violated counts and reports a wrong result and starts a quarantine. It returns v as the error of
// the impl, or nil if the policy only reports.
func (b *binding) violated(t *table, c *candidate, k *check, v *VerificationFailed) error {
	v.Number, v.LastRight, v.Used = k.number, k.schedule.passed.Load(), t.policy.Verify.ReportOnly && c.canary == nil
	v.Call = TappedCall{Op: b.handle, Layer: b.m.scope.layer - 1, Phase: b.m.scope.phase, Args: k.parts[k.wrong].before, Pool: b.exec.Pool()}
	v.Result = k.parts[k.wrong].call
	if keep := b.m.core.keepWrong.Load(); keep != nil {
		v.File = (*keep)(*v)
	}
	c.counters.verify.violated(v.File)
	b.m.core.emit(*v)
	v.Call, v.Result = TappedCall{}, opregistry.Call{} // the quarantine lasts
	if v.Used {
		return nil
	}
	k.schedule.suspect.Store(true)
	k.schedule.next.Store(k.schedule.calls.Load() + 1)
	if q, open := b.m.core.quarantine.wrong(b.name, c.info, v); open {
		b.m.core.emit(q)
		b.m.core.rebuild()
	}
	b.m.core.judge(b.name, c, v)
	return b.implError(c, v)
}

// restore gives the operands of a call that an impl spoiled the content that they had before.
func (k *check) restore() error {
	if err := restore(k.saved); err != nil {
		return err
	}
	for _, p := range k.parts {
		operands := p.call.Operands()
		for i, old := range p.before.Operands() {
			if old.Tensor == nil || !k.whole && sameContent(old.Tensor, operands[i].Tensor) {
				continue
			}
			if !k.whole && operands[i].Access == opregistry.AccessRead {
				return fmt.Errorf("operand %q was written to, although the op only reads it, and only %s of it can be restored",
					old.Name, plural(old.Tensor.NumElements(), "element"))
			}
			if k.whole {
				if err := operands[i].Tensor.CopyFrom(old.Tensor); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
	text := fmt.Sprintf("operand %q differs from the result of %s: %d of %d elements beyond %v; worst %v", e.Operand, cmp.Or(e.Than, "the reference"), e.Beyond, e.Elements, e.Tolerance, e.Worst)
	if e.UnexpectedWrite != "" {
		text = fmt.Sprintf("operand %q %s", e.Operand, e.UnexpectedWrite)
	}
	text += e.trust()
	if e.File != "" {
		text += "; primus ops replay " + e.File + " runs the call again"
	}
	return text
}

// KeepWrong makes keep see each call whose result was wrong before Listeners hear of it, in m and
// in all Managers that share its registry. It is called on the goroutine of the call, and returns
// the name of the file in which it kept the call, "" for none. A nil function ends that.
func (m *Manager) KeepWrong(keep func(VerificationFailed) (file string)) {
	if keep == nil {
		m.core.keepWrong.Store(nil)
		return
	}
	m.core.keepWrong.Store(&keep)
}

// trust says which earlier results are in doubt.
func (e *VerificationFailed) trust() string {
	switch unseen := e.Number - e.LastRight - 1; {
	case e.Number <= 1 || unseen == 0:
		return ""
	default:
		return fmt.Sprintf("; %s of this kind since the last one that was verified may be wrong, too", plural(int(unseen), "call"))
	}
}

// plural returns a number of things. Package plaintext would bring a library for tables into
// programs that embed dispatch.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
