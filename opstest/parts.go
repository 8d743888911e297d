package opstest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	// maxWork is how many operations the oracle does for one case.
	maxWork = 1e8

	// sampledParts is how many parts of a larger one are compared.
	sampledParts = 24
)

// compareParts compares parts of results with those of the oracle, and the whole with its
// invariants. No element may still hold the NaN that it began with, unless an operand has some.
func (r *runner) compareParts(t T, want, got *staged) {
	t.Helper()
	wanted, theirs := want.args.Parts(), got.args.Parts()
	type pair struct {
		part       int
		want, have opregistry.Operand
	}
	var pairs []pair
	scales := map[string]float64{} // of operands
	for _, i := range someParts(wanted.N) {
		part, results, err := wanted.At(i)
		if err == nil {
			part, err = argcopy.Args(part) // it also writes what other parts compute
		}
		if err != nil {
			t.Fatalf("opstest: the case itself is wrong: %v", err)
		}
		have, _, err := theirs.At(i)
		if err != nil {
			t.Fatalf("opstest: the case itself is wrong: %v", err)
		}
		if err := r.oracle(r.serial, part); err != nil {
			t.Fatalf("opstest: the oracle: part %d of %d: %v", i, wanted.N, err)
		}
		operands := have.Operands()
		for k, o := range part.Operands() {
			if o.Access == opregistry.AccessRead || results != nil && !slices.Contains(results, o.Name) {
				continue
			}
			pairs = append(pairs, pair{i, o, operands[k]})
			scales[o.Name] = max(scales[o.Name], want.scale(o.Tensor))
		}
	}
	for _, p := range pairs {
		if x := p.want; !tensortest.Close(t, x.Tensor, p.have.Tensor, r.tolerance(x.Tensor.DType(), want.terms, scales[x.Name])) {
			t.Errorf("opstest: part %d of %d of operand %q is not what the oracle computes", p.part, wanted.N, x.Name)
		}
	}
	if slices.ContainsFunc(got.operands, special) {
		return
	}
	for _, o := range got.operands {
		if o.Access != opregistry.AccessRead && o.Tensor.DType().IsFloat() && slices.ContainsFunc(o.Tensor.Float64s(), math.IsNaN) {
			t.Errorf("opstest: operand %q has elements that were not written, or are NaN", o.Name)
		}
	}
	if r.invariants == nil {
		return
	}
	for _, v := range r.invariants(got.args) {
		if !(math.Abs(v.Got-v.Want) <= v.Bound) {
			t.Errorf("opstest: %s is %.9g, want %.9g: off by %.3g, at most %.3g is rounding", v.Name, v.Got, v.Want, math.Abs(v.Got-v.Want), v.Bound)
		}
	}
}

// someParts returns the first and the last part of n, the one in the middle, and random ones.
func someParts(n int) []int {
	if n == 0 {
		return nil
	}
	parts := []int{0, n - 1, n / 2}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for len(parts) < sampledParts {
		parts = append(parts, rng.IntN(n))
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// Rounding returns how far a number of dtype d near v may be from what it was before it was
// rounded, when it is the sum of so many terms up to 1 in f32.
func Rounding(d tensor.DType, v float64, terms int) float64 {
	unit, _ := narrow(d)
	unit = max(unit, 0x1p-24)
	return unit*math.Abs(v) + float64(terms)*0x1p-23
}
