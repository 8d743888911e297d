package opstest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	variedCases     = 6         // of a dtype, whose calls are changed in all ways
	specialCases    = 3         // of a dtype, of which an operand has NaN or an infinity
	specialOperands = 8         // of a call, that have NaN or an infinity
	paddedOperands  = 8         // of a call, that have gaps one at a time
	stretchedCases  = 12        // of a dtype, whose axes are made long
	stretched       = 4100      // the least that an axis is stretched to
	long            = 2113      // the least length of an axis that is long
	tail            = 99        // has a tail after vectors of any length
	huge            = 1<<16 + 1 // does not fit in 16 bits

	// stretchedElements is how many elements an operand of a stretched call has about, and
	// muchStretched how many all of them have, unless an axis is no longer than it must be; then it
	// is maxStretched.
	stretchedElements = 1 << 17
	largeElements     = 1 << 16 // of a result that need not be made larger
	muchStretched     = 1 << 21
	maxStretched      = 1 << 24
)

// vary changes cases that an impl served by rules that hold for every op, and compares the
// results with those of the oracle: operands have another layout or another alignment, one of
// them is another one, or has NaN or an infinity; arguments have other values; axes and lists are
// as long as those of models.
func (r *runner) vary(t T, d tensor.DType) {
	t.Helper()
	served := slices.DeleteFunc(slices.Clone(r.served), func(c untypedCase) bool { return c.dtype != d || c.model || c.Work > huntedWork })
	varied, special, stretched, changed := variedCases, specialCases, stretchedCases, changedCases
	if r.cfg.sample > 0 {
		varied, special, stretched, changed = 1, 1, 2, 0
	}
	for _, c := range r.longest(served, varied) {
		for _, shift := range []int{1, 2, 7} {
			r.varied(t, fmt.Sprintf("shifted=%d", shift), c, setting{place: shiftedBy(shift)})
		}
		r.pad(t, c)
		r.alias(t, c)
	}
	if !r.changeable() {
		return
	}
	for _, c := range r.longest(served, special) {
		r.special(t, c)
		r.subnormal(t, c)
	}
	r.magnify(t, slices.DeleteFunc(slices.Clone(r.served), func(c untypedCase) bool {
		return c.dtype != d || c.Work > huntedWork || c.model && r.cfg.sample > 0
	}))
	for _, c := range r.longest(served, stretched) {
		r.stretch(t, c)
	}
	r.lengthen(t, served)
	r.change(t, served, changed)
}

// longest returns at most limit cases, those whose operands have the most axes, and of those with
// operands of the same shapes one. Cases come first in which other rows are shorter than others.
func (r *runner) longest(cases []untypedCase, limit int) []untypedCase {
	type shaped struct {
		untypedCase
		shapes, shorter string
		axes            int
	}
	var all []shaped
	for _, c := range cases {
		call, ok := r.made(c, setting{})
		if !ok {
			continue
		}
		s := shaped{untypedCase: c}
		for _, o := range call.operands {
			shape := o.Tensor.Shape()
			s.shapes += shape.String()
			if len(shape) > 0 {
				s.shorter += call.axisOf(o, len(shape)-1, 0)
			}
			for _, n := range shape {
				if n == 0 {
					s.axes = 0
					break
				}
				if n > 2 {
					s.axes++
				}
			}
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b shaped) int { return b.axes - a.axes })
	var found []untypedCase
	seen := map[string]bool{}
	for _, key := range []func(shaped) string{func(s shaped) string { return s.shorter }, func(s shaped) string { return s.shapes }} {
		for _, s := range all {
			if len(found) < limit && !seen[s.shapes] && !seen[key(s)] {
				seen[s.shapes], seen[key(s)] = true, true
				found = append(found, s.untypedCase)
			}
		}
	}
	return found
}

// varied runs a case with operands that are made in another way, if the op and the oracle allow it.
func (r *runner) varied(t T, name string, c untypedCase, with setting) (judged bool) {
	t.Helper()
	want, ok := r.made(c, with)
	return ok && r.variedAs(t, name, c, with, want)
}

// variedAs is varied with operands for the oracle that are made.
func (r *runner) variedAs(t T, name string, c untypedCase, with setting, want *staged) (judged bool) {
	t.Helper()
	r.run(t, c.dtype.String()+"/"+name+"/"+c.Name, func(t T) {
		if err := r.wanted(want, with); err != nil {
			t.Skipf("not judged: the oracle: %v", err)
		}
		judged = true
		if with.conditioned {
			if want.moves = r.condition(c, with, want); want.moves == nil {
				t.Skipf("not judged: the oracle does not serve operands that are a little off")
			}
		}
		got, _ := r.made(c, with)
		r.judge(t, want, got, with)
	})
	return judged
}

// judge runs the impl on operands that are ready and compares the results.
func (r *runner) judge(t T, want, got *staged, with setting) {
	t.Helper()
	if err := r.save(t, got, with); err != nil {
		t.Skipf("declined: the forward impl: %v", err)
	}
	got.remember()
	err := r.guard(r.serial, got.args)
	r.inspect(t, got, err)
	switch {
	case errors.Is(err, opregistry.ErrUnsupported):
		t.Skipf("declined: %v", err)
	case err != nil:
		t.Fatalf("opstest: the impl failed: %v", err)
	}
	r.compare(t, want, got)
}

// pad puts gaps after the rows of all operands, or of one at a time if the op does not allow it for
// all.
func (r *runner) pad(t T, c untypedCase) {
	t.Helper()
	if r.varied(t, "padded", c, setting{padded: func(int) bool { return true }}) {
		return
	}
	dense, ok := r.made(c, setting{})
	if !ok {
		return
	}
	for _, one := range someOf(dense.stage.made, paddedOperands) {
		r.varied(t, fmt.Sprintf("padded=%d", one), c, setting{padded: func(i int) bool { return i == one }})
	}
}

// alias lets each result be each of the operands that the op allows it to be.
func (r *runner) alias(t T, c untypedCase) {
	t.Helper()
	for _, p := range r.op.Params() {
		if p.Sort != opregistry.SortTensor || p.Access == "read" {
			continue
		}
		for _, other := range p.MayBe {
			want, ok := r.made(c, setting{})
			if !ok {
				return
			}
			source, result := operandOf(want.args, other), operandOf(want.args, p.Name)
			if source == nil || result == nil || source == result || source.DType() != result.DType() || !source.Shape().Equal(result.Shape()) {
				continue
			}
			r.run(t, c.dtype.String()+"/aliased/"+p.Name+"="+other+"/"+c.Name, func(t T) {
				if err := r.oracle(r.serial, want.args); err != nil {
					t.Skipf("not judged: the oracle: %v", err)
				}
				got := r.stage(t, c, setting{})
				clone, args := got.args.Clone()
				of := r.op.Params()
				from := of[slices.IndexFunc(of, func(q opregistry.Param) bool { return q.Name == other })]
				args.FieldByIndex(p.Path).Set(args.FieldByIndex(from.Path))
				if err := clone.Validate(); err != nil {
					t.Skipf("the op does not allow it: %v", err)
				}
				got.args, got.operands = clone, clone.Operands()
				if len(got.operands) != len(want.operands) {
					t.Skipf("the operands are others")
				}
				r.judge(t, want, got, setting{})
			})
		}
	}
}

// operandOf returns the operand with a name, nil if the call has none.
func operandOf(a opregistry.Call, name string) *tensor.Tensor {
	for _, o := range a.Operands() {
		if o.Name == name {
			return o.Tensor
		}
	}
	return nil
}

// specialValues are those that one element of an operand gets.
var specialValues = []struct {
	name  string
	value float64
}{{"nan", math.NaN()}, {"inf", math.Inf(1)}, {"minus_inf", math.Inf(-1)}}

// special gives one element of operands of numbers in turn the value NaN, and those of infinities.
// It leaves out what a backward op with dropout shares with its forward op: whether a NaN counts
// that dropout hides is not defined.
func (r *runner) special(t T, c untypedCase) {
	t.Helper()
	call, ok := r.made(c, setting{})
	if !ok {
		return
	}
	for _, i := range someOf(len(call.operands), specialOperands) {
		o := call.operands[i]
		n := o.Tensor.NumElements()
		if !r.takesSpecial(call, o) {
			continue
		}
		for _, special := range specialValues {
			with := setting{infinite: math.IsInf(special.value, 0)}
			for _, at := range slices.Compact([]int{n / 3, n - 1}) { // the last one may be of a part of its own
				with.change = func(_ tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
					x := a.Operands()[i].Tensor
					v := x.Float64s()
					v[at] = special.value
					s.Fill(x, v)
					return a
				}
				r.varied(t, fmt.Sprintf("%s_in_%s=%d", special.name, o.Name, at), c, with)
			}
		}
	}
}

// takesSpecial reports whether a rule may give an operand special values.
func (r *runner) takesSpecial(call *staged, o opregistry.Operand) bool {
	d := o.Tensor.DType()
	return o.Access != opregistry.AccessWrite && d.IsFloat() && d.Size() > 1 && o.Tensor.NumElements() > 0 && !(r.drops(call.args) && r.forwardHas(o.Name))
}

// drops reports whether a call leaves out numbers at random.
func (r *runner) drops(a opregistry.Call) bool {
	_, args := a.Clone()
	return slices.ContainsFunc(r.op.Params(), func(p opregistry.Param) bool {
		return strings.Contains(p.Name, "dropout") && isNumber(p) && !args.FieldByIndex(p.Path).IsZero()
	})
}

// forwardHas reports whether the forward op has an operand of a backward op.
func (r *runner) forwardHas(operand string) bool {
	return r.refresh != nil && slices.ContainsFunc(r.cfg.oracleForward.Op.Params(), func(p opregistry.Param) bool {
		return strings.EqualFold(p.Name, operand)
	})
}

// stretch makes each axis of a case in turn as long as one of a model, and of an odd length, unless
// an earlier case has made all axes long that would be. Axes of the same length, of twice that
// length and of the number of its blocks grow with it.
func (r *runner) stretch(t T, c untypedCase) {
	t.Helper()
	call, ok := r.made(c, setting{})
	if !ok || slices.ContainsFunc(call.operands, func(o opregistry.Operand) bool { return o.Tensor.NumElements() == 0 }) {
		return
	}
	largest := map[int]int{} // elements of the largest operand that has an axis of a length
	for _, o := range call.operands {
		for _, n := range o.Tensor.Shape() {
			if n > 2 {
				largest[n] = max(largest[n], o.Tensor.NumElements())
			}
		}
	}
	most := func(n int) int { return max(stretched, n*stretchedElements/largest[n]) }
	if r.large {
		most = func(int) int { return long } // calls of models have longer axes, and as many elements
	}
	for _, n := range slices.Sorted(maps.Keys(largest)) {
		if largest[n] > stretchedElements {
			continue
		}
		if r.short(call, n, long) && (r.stretchTo(t, c, n, most(n), long, muchStretched) || r.stretchTo(t, c, n, long, long, maxStretched)) {
			continue
		}
		if c.dtype == r.cfg.dtypes[0] && r.cfg.sample == 0 && r.short(call, n, huge) {
			r.stretchTo(t, c, n, huge, huge, muchStretched)
		}
		if r.short(call, n, tail) {
			r.stretchTo(t, c, n, tail, tail, muchStretched)
		}
	}
}

// stretchTo makes an axis of length n, and those that grow with it, at least so long, if no more
// than limit elements do that, and an axis had no odd length of at least wanted before.
func (r *runner) stretchTo(t T, c untypedCase, n, least, wanted, limit int) bool {
	t.Helper()
	call, ok := r.made(c, setting{})
	if !ok {
		return false
	}
	tried := map[string]bool{}
	for _, g := range growths() {
		to := (least + n - 1) / n * n
		if g.odd {
			to = least | 1 // has a tail after vectors and blocks
		}
		longer := func(m int) int { return g.of(m, n, to) }
		lengths := fmt.Sprint(lengthsOf(call, longer))
		if tried[lengths] {
			continue
		}
		tried[lengths] = true
		for _, block := range []int{0, 1, 16, 32, 128} {
			with := setting{axis: longer, limit: limit}
			if block > 0 {
				size := func(v int) int {
					if block > 1 && (v+block-1)/block == n {
						return to * block
					}
					return longer(v)
				}
				if _, changed := resized(call.args, size); !changed {
					continue
				}
				with.change = func(_ tensortest.TB, _ *Stage, a opregistry.Call) opregistry.Call {
					other, _ := resized(a, size)
					return other
				}
			}
			outline := with
			outline.outline = true // most of these calls are not possible
			found, ok := r.made(c, outline)
			if !ok {
				continue
			}
			if parts := found.args.Parts(); wanted == huge && parts.Work*float64(parts.N) > huntedWork {
				continue
			}
			if more := r.lengthened(found, wanted, g.odd); more != nil {
				grown := c
				grown.Terms = max(c.Terms, to)
				want, ok := r.made(grown, with)
				if !ok {
					continue
				}
				if r.variedAs(t, fmt.Sprintf("stretched=%d,%d", n, to), grown, with, want) {
					for _, axis := range more {
						r.long[axis] = true
					}
				}
			}
			return true
		}
	}
	return false
}

// short reports whether an operand has an axis of length n that was not as long as wanted in an
// earlier call.
func (r *runner) short(call *staged, n, wanted int) bool {
	return slices.ContainsFunc(call.operands, func(o opregistry.Operand) bool {
		for i, m := range o.Tensor.Shape() {
			if m == n && !r.long[call.axisOf(o, i, wanted)] {
				return true
			}
		}
		return false
	})
}

// axisOf names an axis of an operand, its last axes that are shorter, as the part of a row is to
// which something is done, and a length that it is to have.
func (call *staged) axisOf(o opregistry.Operand, i, wanted int) string {
	var shorter []string
	n := o.Tensor.Shape()[i]
	for _, other := range call.operands {
		if shape := other.Tensor.Shape(); i == len(o.Tensor.Shape())-1 && len(shape) > 1 && shape.Cols() < n {
			shorter = append(shorter, other.Name)
		}
	}
	return fmt.Sprint(o.Name, " ", i, " ", o.Tensor.DType(), " ", wanted, shorter)
}

// lengthened names the axes of operands whose length is at least wanted, and odd if it can be, and
// was not so in an earlier call.
func (r *runner) lengthened(call *staged, wanted int, odd bool) []string {
	var more []string
	for _, o := range call.operands {
		for i, n := range o.Tensor.Shape() {
			if axis := call.axisOf(o, i, wanted); n >= wanted && (n%2 == 1 || !odd) && !r.long[axis] {
				more = append(more, axis)
			}
		}
	}
	return more
}

// made makes the operands of a case outside of a test; ok is false when the case does not allow it.
func (r *runner) made(c untypedCase, with setting) (call *staged, ok bool) {
	defer func() {
		if recover() != nil { // the case makes operands of its own lengths only
			call, ok = nil, false
		}
	}()
	fault := faultOf(func(t T) { call = r.stage(t, c, with) })
	return call, fault == ""
}
