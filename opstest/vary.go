package opstest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

const (
	variedCases    = 6    // of a dtype, whose calls are changed in all ways
	stretchedCases = 4    // of a dtype, of an op without calls of models
	stretched      = 4100 // the least that an axis is stretched to

	// stretchedElements is how many elements an operand of a stretched call has about, and
	// maxStretched how many one of them, and all of them, have at most.
	stretchedElements = 1 << 17
	maxStretched      = 1 << 21
)

// vary changes cases that an impl served by rules that hold for every op, and compares the results
// with those of the oracle: operands have another layout or another alignment, one of them is
// another one; and axes are as long as those of models.
func (r *runner) vary(t T, d tensor.DType) {
	t.Helper()
	served := slices.DeleteFunc(slices.Clone(r.served), func(c untypedCase) bool { return c.dtype != d || c.model || c.Work > huntedWork })
	varied, stretched := variedCases, stretchedCases
	if r.cfg.sample > 0 {
		varied, stretched = 1, 1
	}
	for _, c := range r.longest(served, varied) {
		for _, shift := range []int{1, 2, 5} {
			r.varied(t, fmt.Sprintf("shifted=%d", shift), c, setting{place: shiftedBy(shift)})
		}
		r.varied(t, "padded", c, setting{padded: true})
		r.alias(t, c)
	}
	if len(r.models(d, false)) > 0 {
		return
	}
	for _, c := range r.longest(served, stretched) {
		r.stretch(t, c)
	}
}

// longest returns at most limit cases, those whose operands have the most axes, and of those with
// operands of the same shapes one.
func (r *runner) longest(cases []untypedCase, limit int) []untypedCase {
	type shaped struct {
		untypedCase
		shapes string
		axes   int
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
	for _, s := range all {
		if len(found) < limit && !seen[s.shapes] {
			seen[s.shapes] = true
			found = append(found, s.untypedCase)
		}
	}
	return found
}

// varied runs a case with operands that are made in another way, if the op allows it.
func (r *runner) varied(t T, name string, c untypedCase, with setting) {
	t.Helper()
	want, ok := r.made(c, with)
	if !ok {
		return
	}
	r.run(t, c.dtype.String()+"/"+name+"/"+c.Name, func(t T) {
		if err := r.oracle(r.serial, want.args); err != nil {
			t.Skipf("not judged: the oracle: %v", err)
		}
		got, _ := r.made(c, with)
		r.judge(t, want, got)
	})
}

// judge runs the impl on operands that are ready and compares the results.
func (r *runner) judge(t T, want, got *staged) {
	t.Helper()
	if r.refresh != nil && r.cfg.forward != nil {
		if err := r.refresh(t, r.serial, got.args, *r.cfg.forward); err != nil {
			t.Skipf("declined: the forward impl: %v", err)
		}
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
				r.judge(t, want, got)
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

// stretch makes each axis of a case in turn as long as one of a model. Axes of the same length, of
// twice that length and of the number of its blocks grow with it.
func (r *runner) stretch(t T, c untypedCase) {
	t.Helper()
	call, ok := r.made(c, setting{})
	if !ok {
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
	for _, n := range slices.Sorted(maps.Keys(largest)) {
		if largest[n] > stretchedElements {
			continue
		}
		least := max(stretched, n*stretchedElements/max(largest[n], 1))
		for _, also := range [][]float64{{1}, {1, 2}, {1, 0.5}, {1, 1. / 16}, {1, 1. / 32}, {1, 1. / 128}} {
			to := (least + n - 1) / n * n
			if slices.Min(also) == 1 {
				to = least | 1 // has a tail after vectors and blocks
			}
			longer := func(m int) int {
				for _, f := range also {
					if float64(m) == f*float64(n) {
						return int(f * float64(to))
					}
				}
				return m
			}
			found, ok := r.made(c, setting{axis: longer})
			if !ok {
				continue
			}
			elements := 0
			for _, o := range found.operands {
				elements += o.Tensor.NumElements()
			}
			if elements <= maxStretched {
				with := c
				with.Terms = max(c.Terms, to)
				r.varied(t, fmt.Sprintf("stretched=%d,%d", n, to), with, setting{axis: longer})
			}
			break
		}
	}
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
