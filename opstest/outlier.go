package opstest

import (
	"fmt"
	"math"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	outlier         = 1e4     // is far beyond the others, and no number of an f16 is too small for it
	outlierElements = 1 << 21 // of an operand at most that gets outliers
	outlierRounds   = 3
)

// outliers gives each row of an operand of numbers one element that is far larger than the others,
// at the places where loops begin and end, and then takes so much from all elements: an exponential
// overflows, or all of them are 0, unless it is that of the distance to the right maximum. Of the
// cases it takes that in which the operand has the longest rows.
func (r *runner) outliers(t T, served []untypedCase) {
	t.Helper()
	type longestRow struct {
		untypedCase
		operand, rows, cols int
	}
	found := map[string]longestRow{}
	var names []string
	for _, c := range served {
		call, ok := r.made(c, setting{})
		if !ok {
			continue
		}
		for i, o := range call.operands {
			shape := o.Tensor.Shape()
			if len(shape) == 0 || !r.takesSpecial(call, o) || r.saved(o.Name) || o.Tensor.NumElements() > outlierElements {
				continue
			}
			old, seen := found[o.Name]
			if cols := shape.Cols(); !seen || cols > old.cols {
				found[o.Name] = longestRow{c, i, shape.Rows(), cols}
			}
			if !seen {
				names = append(names, o.Name)
			}
		}
	}
	for _, k := range someOf(len(names), specialOperands) {
		o := found[names[k]]
		with := setting{magnitude: outlier, infinite: true} // products of them may overflow
		edited := func(edit func(v []float64)) setting {
			with.change = func(_ tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
				x := a.Operands()[o.operand].Tensor
				v := x.Float64s()
				edit(v)
				s.Fill(x, v)
				return a
			}
			return with
		}
		places := placesOf(o.cols)
		for round := range min(outlierRounds, (len(places)+o.rows-1)/o.rows) {
			r.varied(t, fmt.Sprintf("outlier=%d_in_%s", round, names[k]), o.untypedCase, edited(func(v []float64) {
				for row := range o.rows {
					v[row*o.cols+places[(row+round*o.rows)%len(places)]] = outlier
				}
			}))
		}
		r.varied(t, "low_"+names[k], o.untypedCase, edited(func(v []float64) {
			for i := range v {
				v[i] -= outlier
			}
		}))
	}
}

// placesOf returns where loops over n elements begin and end: those of one element, of vectors and
// of blocks.
func placesOf(n int) []int {
	places := []int{n - 1, 0, n / 2, n * 7 / 8, 1}
	for _, width := range []int{4, 8, 16, 64, 1024} {
		places = append(places, n/width*width, n/width*width-1)
	}
	var some []int
	for _, p := range places {
		if p >= 0 && p < n && !slices.Contains(some, p) {
			some = append(some, p)
		}
	}
	return some
}

// wide returns a tolerance for results of numbers of a magnitude, which an impl may keep in f32 on
// the way.
func (r *runner) wide(tol tensortest.Tolerance, want *staged, x *tensor.Tensor) tensortest.Tolerance {
	if want.magnitude == 0 || !x.DType().IsFloat() {
		return tol
	}
	largest := 1.0
	for _, v := range x.Float64s() {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	tol.Abs = max(tol.Abs, want.magnitude*r.tolerance(tensor.F32, want.terms, 1).Abs) * largest
	return tol
}
