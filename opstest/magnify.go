package opstest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	outlier           = 1e4     // is far beyond other numbers, and is an f16
	magnifiedElements = 1 << 20 // of an operand that gets such numbers, at most
	outlierRounds     = 3
)

// magnify gives operands other magnitudes, in the case in which they have the longest rows and in
// one that has most axes. All numbers become larger or smaller. Each row gets an element that is
// far larger than the others, at the places where loops begin and end, and all are as far below 0:
// an exponential overflows, or each is 0, unless it is that of the distance to the right maximum.
// The elements of an operand of integers become equal, rise or fall, such as tokens that are all
// one word.
func (r *runner) magnify(t T, served []untypedCase) {
	t.Helper()
	longest := map[string]magnified{}
	var names []string
	for _, c := range served {
		call, ok := r.made(c, setting{})
		if !ok {
			continue
		}
		for _, m := range r.magnifiable(call) {
			m.untypedCase = c
			list := m.name[:max(strings.LastIndex(m.name, "["), 0)] // of which one is enough
			if list == "" {
				list = m.name
			}
			old, seen := longest[list]
			if !seen || m.cols > old.cols {
				longest[list] = m
			}
			if !seen {
				names = append(names, list)
			}
		}
	}
	operands, cases := specialOperands, 1
	if r.cfg.sample > 0 {
		operands, cases = 2, 0
	}
	for _, k := range someOf(len(names), operands) {
		r.magnifyOne(t, longest[names[k]], true)
	}
	for _, c := range r.longest(served, cases) {
		if call, ok := r.made(c, setting{}); ok {
			all := r.magnifiable(call)
			for _, k := range someOf(len(all), specialOperands) {
				all[k].untypedCase = c
				r.magnifyOne(t, all[k], false)
			}
		}
	}
}

// magnified is an operand that gets numbers of another magnitude.
type magnified struct {
	untypedCase
	operand, rows, cols int
	name                string
	integers            bool
}

// magnifiable lists such operands of a call.
func (r *runner) magnifiable(call *staged) (all []magnified) {
	for i, o := range call.operands {
		x, shape := o.Tensor, o.Tensor.Shape()
		integers := o.Access == opregistry.AccessRead && (x.DType() == tensor.I32 || x.DType() == tensor.I64)
		if len(shape) > 0 && x.NumElements() > 0 && x.NumElements() <= magnifiedElements && (integers || r.takesSpecial(call, o)) && !r.saved(o.Name) {
			all = append(all, magnified{operand: i, rows: shape.Rows(), cols: shape.Cols(), name: o.Name, integers: integers})
		}
	}
	return all
}

// magnifyOne changes one operand; outliers says whether it gets some, too.
func (r *runner) magnifyOne(t T, o magnified, outliers bool) {
	t.Helper()
	run := func(name string, with setting, edit func(v []float64)) {
		with.change = func(_ tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
			x := a.Operands()[o.operand].Tensor
			v := x.Float64s()
			edit(v)
			s.Fill(x, v)
			return a
		}
		r.varied(t, name+"_"+o.name, o.untypedCase, with)
	}
	if o.integers {
		run("equal", setting{}, func(v []float64) { copy(v, slices.Repeat([]float64{slices.Max(v)}, len(v))) })
		run("rising", setting{}, func(v []float64) { sequence(v, 1) })
		run("falling", setting{}, func(v []float64) { sequence(v, -1) })
		return
	}
	for _, exponent := range []int{6, -12} {
		factor := math.Ldexp(1, exponent)
		run(fmt.Sprintf("times=2^%d", exponent), setting{magnitude: max(factor, 1), infinite: true}, func(v []float64) {
			for i := range v {
				v[i] *= factor
			}
		})
	}
	if !outliers {
		return
	}
	with := setting{magnitude: outlier, far: true, infinite: true} // products of them may overflow
	places := placesOf(o.cols)
	for round := range min(outlierRounds, (len(places)+o.rows-1)/o.rows) {
		run(fmt.Sprintf("outlier=%d", round), with, func(v []float64) {
			for row := range o.rows {
				v[row*o.cols+places[(row+round*o.rows)%len(places)]] = outlier
			}
		})
	}
	run("low", with, func(v []float64) {
		for i := range v {
			v[i] -= outlier
		}
	})
}

// sequence replaces integers by those from the least to the largest of them, in steps, and again.
func sequence(v []float64, step float64) {
	least, largest := slices.Min(v), slices.Max(v)
	next := least
	if step < 0 {
		next = largest
	}
	for i := range v {
		v[i] = next
		if next += step; next > largest {
			next = least
		} else if next < least {
			next = largest
		}
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
// the way. Where some are far from the others, differences are left that have few digits.
func (r *runner) wide(tol tensortest.Tolerance, want *staged, x *tensor.Tensor) tensortest.Tolerance {
	if want.magnitude == 0 || !x.DType().IsFloat() {
		return tol
	}
	largest := 1.0
	if want.far {
		largest = want.magnitude
	}
	for _, v := range x.Float64s() {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	tol.Abs = max(tol.Abs, want.magnitude*r.tolerance(tensor.F32, want.terms, 1).Abs) * largest
	return tol
}

// overflown takes an infinity of the same sign for a number of 2^100 and more: a factor of it may
// have overflowed in f32.
func overflown(want, got []float64) {
	for i, w := range want {
		if math.Abs(w) >= 0x1p100 && math.IsInf(got[i], int(math.Copysign(1, w))) {
			want[i] = got[i]
		}
	}
}
