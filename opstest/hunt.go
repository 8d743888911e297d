package opstest

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	huntedCases = 6   // of a dtype, in which an impl is made to remember
	pagedCases  = 24  // of a dtype, beside guarded pages
	huntedWork  = 3e7 // operations of a case that is called many times
)

// hunt looks for what an impl keeps from earlier calls and for what it reads beside its operands,
// in some of the cases of a dtype that it served.
func (r *runner) hunt(t T, d tensor.DType) {
	t.Helper()
	hunted, paged := huntedCases, pagedCases
	served := slices.DeleteFunc(slices.Clone(r.served), func(c untypedCase) bool { return c.dtype != d || c.Work > huntedWork })
	if r.cfg.sample > 0 {
		served = slices.DeleteFunc(served, func(c untypedCase) bool { return c.model })
		hunted, paged = 2, 4
	}
	for k, i := range someOf(len(served), hunted) {
		c, other := served[i], served[(i+1+k)%len(served)]
		r.run(t, d.String()+"/after_other_calls/"+c.Name, func(t T) { r.remembers(t, c, other) })
	}
	if !r.cfg.pages {
		return
	}
	for _, i := range someOf(len(served), paged) {
		r.run(t, d.String()+"/beside_guarded_pages/"+served[i].Name, func(t T) { r.atPages(t, served[i]) })
	}
}

// someOf returns at most limit of the numbers below n, the last one among them.
func someOf(n, limit int) []int {
	var some []int
	for i := range min(n, limit) {
		some = append(some, n-1-i*n/min(n, limit))
	}
	return some
}

// remembers calls an impl at the same addresses with one element that is another, the last one or
// one that nothing marks, with other values and other numbers, with another shape, and then as at
// first.
func (r *runner) remembers(t T, c, other untypedCase) {
	var memory arena
	call := func(c untypedCase, with setting) *staged {
		t.Helper()
		with.place = memory.reset()
		got, err := r.call(t, c, r.serial, with)
		if err != nil {
			t.Skipf("declined: %v", err)
		}
		return got
	}
	first := call(c, setting{})
	kept := &staged{operands: slices.Clone(first.operands), before: first.before}
	for i, o := range kept.operands {
		if o.Access != opregistry.AccessRead {
			kept.operands[i].Tensor = copyOf(t, o.Tensor)
		}
	}
	const anotherSeed = 1 << 20
	for _, next := range []struct {
		untypedCase
		setting
	}{
		{c, setting{edit: func(v float64) float64 { return 1 - v }}},
		{c, setting{edit: func(v float64) float64 { return 1 - v }, at: func(n int) int { return rand.New(rand.NewPCG(uint64(n), 3)).IntN(n) }}},
		{c, setting{edit: func(float64) float64 { return math.NaN() }}},
		{c, setting{seed: anotherSeed, scaled: r.enough(c, anotherSeed)}},
		{other, setting{seed: anotherSeed}},
	} {
		if next.edit != nil && !r.changeable() {
			continue
		}
		want := r.stage(t, next.untypedCase, next.setting)
		if r.wanted(want, next.setting) == nil {
			r.compare(t, want, call(next.untypedCase, next.setting))
		}
	}
	again := call(c, setting{})
	switch {
	case !r.cfg.irreproducible:
		r.same(t, kept, again, "before and after other calls at the same addresses")
	case r.values == nil:
		r.compare(t, kept, again)
	}
}

// enough returns what added to the numbers among the arguments of a case changes its results.
func (r *runner) enough(c untypedCase, seed uint64) float64 {
	const little, much = 0.25, 4
	if !r.changeable() || !slices.ContainsFunc(r.op.Params(), isNumber) {
		return little
	}
	with := setting{seed: seed}
	usual, ok := r.made(c, with)
	with.scaled = little
	other, ok2 := r.made(c, with)
	if ok && ok2 && r.wanted(usual, with) == nil && r.wanted(other, with) == nil && !usual.differs(other) {
		return much
	}
	return little
}

// copyOf returns a copy of a tensor with its strides.
func copyOf(t tensortest.TB, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	c, _ := tensortest.GuardedAs(t, x.DType(), x.Shape(), x.Strides())
	if err := c.CopyFrom(x); err != nil {
		t.Fatalf("opstest: %v", err)
	}
	return c
}

// together runs cases from several goroutines at the same time, each with operands of its own: on
// one Exec and on several, one case and different ones.
func (r *runner) together(t T) {
	const callers, rounds = 4, 6
	served := slices.DeleteFunc(slices.Clone(r.served), func(c untypedCase) bool { return c.Work > huntedWork || c.model && r.cfg.sample > 0 })
	some := someOf(len(served), rounds)
	for round := range rounds {
		if len(some) == 0 {
			break
		}
		i := some[(round+round/len(some))%len(some)] // a case is called beside itself and beside others
		var (
			calls, alone [callers]*staged
			errs         [callers]error
			wg           sync.WaitGroup
		)
		for k := range callers {
			c := served[i]
			if round%2 == 1 {
				c = served[(i+k*len(served)/callers)%len(served)]
			}
			with := setting{seed: uint64(k) << 24}
			var err error
			if alone[k], err = r.call(t, c, r.serial, with); err == nil {
				calls[k], err = r.ready(t, c, with)
			}
			if err != nil {
				t.Skipf("declined with other values: %v", err)
			}
		}
		for k := range callers {
			x := r.many
			if k%2 == 1 {
				x = opregistry.NewExec(nil, 0)
			}
			wg.Go(func() { errs[k] = r.guard(x, calls[k].args) })
		}
		wg.Wait()
		for k, call := range calls {
			if errs[k] != nil {
				t.Fatalf("opstest: %s: failed beside other calls: %v", served[i].Name, errs[k])
			}
			r.inspect(t, call, nil)
			if r.cfg.irreproducible {
				r.compare(t, alone[k], call)
			} else {
				r.same(t, alone[k], call, "alone and beside other calls")
			}
		}
	}
}
