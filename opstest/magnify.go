package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	outlier           = 1e4     // is far beyond other numbers, and is an f16
	magnifiedElements = 1 << 20 // of an operand that gets such numbers, at most
	outlierRounds     = 4
	manyPlaces        = 512
	certainGaps       = 11
	magnifiedKinds    = 6 // cases that have other kinds of calls
	ofLarge           = " of large integers"
	shared            = 128 // is added to all operands of numbers
)

// offset is added to the numbers of an operand: they have a large mean, and few or no digits for
// their differences. Roundings of narrow dtypes would leave none at all.
func offset(d tensor.DType) float64 {
	if d.Size() < 4 {
		return 32
	}
	return 2048
}

// magnify gives operands other magnitudes, in the case in which they have the longest rows and in
// one that has most axes. All numbers become larger or smaller, or have a large mean. Each row gets
// an element that is far larger than the others, at the places where loops begin and end, and all
// are as far below 0: an exponential overflows, or each is 0, unless it is that of the distance to
// the right maximum. Each row gets one that is a little larger, so that probabilities are near 0
// and 1. The elements of an operand of integers become equal, rise or fall, such as tokens that are
// all one word, in the case with the longest rows and in that with the largest integers.
func (r *runner) magnify(t T, served []untypedCase) {
	t.Helper()
	longest := map[string]magnified{}
	var names []string
	for _, c := range served {
		call, ok := r.made(c, setting{outline: true})
		if !ok {
			continue
		}
		for _, m := range r.magnifiable(call) {
			m.untypedCase = c
			list := m.list()
			for _, kind := range []struct {
				name   string
				better func(old magnified) bool
			}{
				{list, func(old magnified) bool { return m.cols > old.cols }},
				{list + ofLarge, func(old magnified) bool { return m.largest > old.largest }},
			} {
				if kind.name != list && !m.integers {
					continue
				}
				old, seen := longest[kind.name]
				if !seen || kind.better(old) {
					longest[kind.name] = m
				}
				if !seen {
					names = append(names, kind.name)
				}
			}
		}
	}
	operands, cases, kinds := specialOperands, 1, magnifiedKinds
	if r.cfg.sample > 0 {
		operands, cases, kinds = 2, 0, 0
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		long, large := longest[strings.TrimSuffix(name, ofLarge)], longest[name]
		return strings.HasSuffix(name, ofLarge) && long.Name == large.Name && long.operand == large.operand
	})
	for _, k := range someOf(len(names), operands) {
		r.magnifyOne(t, longest[names[k]], true)
		r.wander(t, longest[names[k]])
	}
	for _, c := range append(r.longest(served, cases), r.ofEachKind(served, kinds)...) {
		if call, ok := r.made(c, setting{}); ok {
			all := r.magnifiable(call)
			r.shift(t, c, all)
			seen := map[string]bool{}
			all = slices.DeleteFunc(all, func(m magnified) bool {
				again := seen[m.list()]
				seen[m.list()] = true
				return again
			})
			for _, k := range someOf(len(all), specialOperands) {
				all[k].untypedCase = c
				r.magnifyOne(t, all[k], false)
			}
		}
	}
}

// ofEachKind returns at most limit cases that together have each value of the arguments that stand
// for names, such as the functions of a score.
func (r *runner) ofEachKind(served []untypedCase, limit int) (found []untypedCase) {
	seen := map[string]bool{}
	for i := range evenly(len(served)) {
		call, ok := r.made(served[i], setting{outline: true})
		if len(found) == limit {
			break
		}
		if !ok || slices.ContainsFunc(call.operands, func(o opregistry.Operand) bool { return o.Tensor.NumElements() == 0 }) {
			continue
		}
		_, args := call.args.Clone()
		more := false
		for _, p := range r.op.Params() {
			if p.Values() == nil || len(p.Path) == 0 {
				continue
			}
			key := fmt.Sprint(p.Name, args.FieldByIndex(p.Path))
			more = more || !seen[key]
			seen[key] = true
		}
		if more {
			found = append(found, served[i])
		}
	}
	return found
}

// magnified is an operand that gets numbers of another magnitude.
type magnified struct {
	untypedCase
	operand, rows, cols int
	name                string
	integers            bool
	largest             float64 // of integers
}

// list returns the name of the list of an operand, of which one is enough, or that of the operand.
func (m magnified) list() string {
	if i := strings.LastIndex(m.name, "["); i > 0 {
		return m.name[:i]
	}
	return m.name
}

// magnifiable lists such operands of a call.
func (r *runner) magnifiable(call *staged) (all []magnified) {
	for i, o := range call.operands {
		x, shape := o.Tensor, o.Tensor.Shape()
		integers := o.Access == opregistry.AccessRead && (x.DType() == tensor.I32 || x.DType() == tensor.I64)
		if len(shape) > 0 && x.NumElements() > 0 && x.NumElements() <= magnifiedElements && (integers || r.takesSpecial(call, o)) && !r.saved(o.Name) {
			m := magnified{operand: i, rows: shape.Rows(), cols: shape.Cols(), name: o.Name, integers: integers}
			if integers {
				m.largest = slices.Max(x.Float64s())
			}
			all = append(all, m)
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
		o.Terms = max(o.Terms, o.rows*o.cols) // all that an index says may be one sum
		run("equal", setting{}, func(v []float64) { copy(v, slices.Repeat([]float64{slices.Max(v)}, len(v))) })
		run("rising", setting{}, func(v []float64) { sequence(v, 1) })
		run("falling", setting{}, func(v []float64) { sequence(v, -1) })
		return
	}
	many := outliers && o.rows*o.cols > 1<<16 && r.cfg.sample == 0
	for _, exponent := range []int{6, 12, -12} {
		factor := math.Ldexp(1, exponent)
		if many {
			break // the case with most axes has fewer elements
		}
		if factor > 64 && o.dtype == tensor.F16 {
			continue // sums of them overflow
		}
		run(fmt.Sprintf("times=2^%d", exponent), setting{magnitude: max(factor, 1), infinite: true}, func(v []float64) {
			for i := range v {
				v[i] *= factor
			}
		})
	}
	if by := offset(o.dtype); !many {
		run(fmt.Sprintf("plus=%g", by), setting{magnitude: by, infinite: true, conditioned: true}, func(v []float64) {
			for i := range v {
				v[i] += by
			}
		})
	}
	if !outliers {
		return
	}
	rounds := outlierRounds
	if many {
		rounds /= 2
	}
	with := setting{magnitude: outlier, far: true, infinite: true} // products of them may overflow
	places := placesOf(o.cols)
	for round := range min(rounds, (len(places)+o.rows-1)/o.rows) {
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
	for round := range min(rounds, (certainGaps+o.rows-1)/o.rows) {
		run(fmt.Sprintf("certain=%d", round), setting{magnitude: 1, infinite: true}, func(v []float64) {
			for row := range o.rows {
				of := v[row*o.cols:][:o.cols]
				of[(row*5+round)%o.cols] = slices.Max(of) + 4 + 2*float64((row+4*round)%certainGaps)
			}
		})
	}
}

// shift adds a number to all operands of numbers of a case: products have a large mean, too.
func (r *runner) shift(t T, c untypedCase, operands []magnified) {
	t.Helper()
	const by = shared
	if c.dtype != tensor.F32 && c.dtype != tensor.F64 {
		return // roundings of the operands would hide all else
	}
	with := setting{magnitude: by * by, infinite: true, conditioned: true, change: func(_ tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
		for _, o := range operands {
			if !o.integers {
				s.Shift(a.Operands()[o.operand].Tensor, by)
			}
		}
		return a
	}}
	if slices.ContainsFunc(operands, func(o magnified) bool { return !o.integers }) {
		r.varied(t, fmt.Sprintf("plus=%d", by), c, with)
	}
}

// condition returns how far results of a call move when each number that it reads moves by a unit
// of f32, which is what roundings on the way do to them, too; nil if the oracle cannot say it.
func (r *runner) condition(c untypedCase, with setting, want *staged) []float64 {
	change := with.change
	with.change = func(t tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
		a = change(t, s, a)
		rng := rand.New(rand.NewPCG(1, 24))
		for _, o := range a.Operands() {
			if o.Access == opregistry.AccessWrite || !o.Tensor.DType().IsFloat() || o.Tensor.DType().Size() < 4 {
				continue
			}
			v := o.Tensor.Float64s()
			for i := range v {
				v[i] *= 1 + math.Copysign(0x1p-23, rng.Float64()-0.5)
			}
			s.Fill(o.Tensor, v)
		}
		return a
	}
	moved, ok := r.made(c, with)
	if !ok || r.wanted(moved, with) != nil {
		return nil
	}
	one, other := r.compared(want), r.compared(moved)
	far := make([]float64, len(one))
	for i := range min(len(one), len(other)) {
		v := other[i].Tensor.Float64s()
		for k, w := range one[i].Tensor.Float64s() {
			if d := math.Abs(v[k] - w); d > far[i] && !math.IsInf(d, 0) {
				far[i] = d
			}
		}
	}
	return far
}

// compared returns the results of a call that are compared.
func (r *runner) compared(call *staged) []opregistry.Operand {
	if r.values != nil {
		return r.values(call.args)
	}
	return call.operands
}

// sequence replaces integers by those from the least to the largest of them, in steps, and again;
// the second half of them ends with the last. Those below 0, which stand for none, stay.
func sequence(v []float64, step float64) {
	least, largest := math.Inf(1), slices.Max(v)
	for _, n := range v {
		if n >= 0 {
			least = min(least, n)
		}
	}
	next, half := least, len(v)-len(v)/2
	if step < 0 {
		next = largest
	}
	for i := range v {
		if back := float64(len(v) - 1 - i); i == half && back < largest-least {
			if next = largest - back; step < 0 {
				next = least + back
			}
		}
		if v[i] >= 0 {
			v[i] = next
		}
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
	for i := range evenly(n) { // and some in between
		if places = append(places, i); len(places) == manyPlaces {
			break
		}
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
	if !want.far {
		tol.Abs *= max(1, want.magnitude) // what a narrow dtype keeps on the way
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
