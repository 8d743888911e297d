package opstest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	// maxWork is how many operations the oracle does for one case.
	maxWork = 2e8

	// sampledRows is how many rows of a larger one are compared.
	sampledRows = 12
)

// compareRows compares rows of results with those of the oracle, and the whole with its invariants.
// No element may still hold the NaN that it began with, which the invariants would show, too.
func (r *runner) compareRows(t T, want, got *staged) {
	t.Helper()
	theirs := r.rows(got.args)
	for i, set := range r.rows(want.args) {
		for _, row := range someRows(set.N) {
			wanted, err := set.Part(row, row+1)
			if err != nil {
				t.Fatalf("opstest: the case itself is wrong: %v", err)
			}
			r.expect(t, wanted)
			have, err := theirs[i].Part(row, row+1)
			if err != nil {
				t.Fatalf("opstest: the case itself is wrong: %v", err)
			}
			operands := have.Operands()
			compared := 0
			for k, o := range wanted.Operands() {
				if !slices.Contains(set.Operands, o.Name) {
					continue
				}
				compared++
				if !tensortest.Close(t, o.Tensor, operands[k].Tensor, r.tolerance(o.Tensor.DType(), want.terms)) {
					t.Errorf("opstest: row %d of operand %q is not what the oracle computes", row, o.Name)
				}
			}
			if compared != len(set.Operands) {
				t.Fatalf("opstest: the case itself is wrong: its rows name operands %q, %d of which the op has", set.Operands, compared)
			}
		}
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

// someRows returns the first and the last row, those around powers of two, and random ones.
func someRows(n int) []int {
	rows := []int{0, n - 1, n / 2}
	for _, edge := range []int{512, 1024} {
		rows = append(rows, min(edge, n-1))
	}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for len(rows) < sampledRows && n > 0 {
		rows = append(rows, rng.IntN(n))
	}
	slices.Sort(rows)
	return slices.DeleteFunc(slices.Compact(rows), func(i int) bool { return i < 0 })
}

// Rounding returns how far a number of dtype d near v may be from what it was before it was
// rounded, when it is the sum of so many terms up to 1 in f32.
func Rounding(d tensor.DType, v float64, terms int) float64 {
	unit, _ := narrow(d)
	unit = max(unit, 0x1p-24)
	return unit*math.Abs(v) + float64(terms)*0x1p-23
}
