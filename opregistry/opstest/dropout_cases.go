package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// The random numbers of the backward cases.
const (
	dropoutSeed   = 0x0123456789abcdef
	dropoutOffset = 1<<32 - 2 // the counter carries into its second word
)

func dropoutShapes() []struct {
	shape  []int
	layout layout
} {
	return []struct {
		shape  []int
		layout layout
	}{
		{[]int{}, dense}, {[]int{1}, dense}, {[]int{7}, padded}, {[]int{8}, dense}, {[]int{3, 5}, padded}, {[]int{2, 3, 17}, turned},
		{[]int{33, 65}, dense}, {[]int{0}, dense}, {[]int{2, 0, 3}, dense},
	}
}

func dropoutFwdArgs(s *stage, l layout, d tensor.DType, shape ...int) dropoutops.DropoutFwdArgs {
	n := tensor.Shape(shape).NumElements()
	return dropoutops.DropoutFwdArgs{
		Input: s.in(l, d, shape...), Out: s.out(l, d, shape...), Mask: s.out(dense, tensor.U8, (n+7)/8),
		DropoutProbability: 0.3, Seed: dropoutSeed, Offset: dropoutOffset, Saved: new(opregistry.Saved),
	}
}

func dropoutFwdCases(d tensor.DType) []testCase[dropoutops.DropoutFwdArgs] {
	type args = dropoutops.DropoutFwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, f := range dropoutShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args { return dropoutFwdArgs(s, f.layout, d, f.shape...) })
	}
	edit := func(name string, change func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := dropoutFwdArgs(s, dense, d, 9, 21)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *stage, a *args) { a.Out = a.Input })
	edit("strided_output", func(s *stage, a *args) { a.Out = s.out(turned, d, 9, 21) })
	edit("p=0", func(_ *stage, a *args) { a.DropoutProbability = 0 })
	edit("p=0.1", func(_ *stage, a *args) { a.DropoutProbability = 0.1 })
	edit("p=0.5", func(_ *stage, a *args) { a.DropoutProbability = 0.5 })
	edit("p=0.99", func(_ *stage, a *args) { a.DropoutProbability = 0.99 })
	edit("p_next_to_1", func(_ *stage, a *args) { a.DropoutProbability = 1 - 0x1p-24 })
	edit("seed=0,offset=0", func(_ *stage, a *args) { a.Seed, a.Offset = 0, 0 })
	edit("last_seed_and_offset", func(_ *stage, a *args) { a.Seed, a.Offset = math.MaxUint64, math.MaxUint64 })
	edit("nan_and_inf", func(s *stage, a *args) {
		v := a.Input.Float64s()
		for i := range v {
			v[i] = [...]float64{math.NaN(), math.Inf(1), v[i]}[i%3]
		}
		s.fill(a.Input, v)
	})
	return cases
}

// dropoutBwdArgs makes the operands of a backward call with the mask that the
// documentation of dropout_fwd defines.
func dropoutBwdArgs(s *stage, l layout, d tensor.DType, shape ...int) dropoutops.DropoutBwdArgs {
	n := tensor.Shape(shape).NumElements()
	a := dropoutops.DropoutBwdArgs{
		GradOutput: s.in(l, d, shape...), Mask: s.out(dense, tensor.U8, (n+7)/8), GradInput: s.out(l, d, shape...),
		DropoutProbability: 0.3, Saved: new(opregistry.Saved),
	}
	s.saveMask(a)
	return a
}

func (s *stage) saveMask(a dropoutops.DropoutBwdArgs) {
	s.t.Helper()
	mask := make([]float64, a.Mask.NumElements())
	var words [4]uint32
	for i := range a.GradOutput.NumElements() {
		if i%4 == 0 {
			words = philox(uint64(dropoutOffset)+uint64(i/4), dropoutSeed)
		}
		if float64(words[i%4]) >= math.Floor(float64(a.DropoutProbability)*0x1p32) {
			mask[i/8] += math.Exp2(float64(i % 8))
		}
	}
	s.fill(a.Mask, mask)
}

// philox returns the four words of Philox4x32-10 for a counter whose upper half is 0.
func philox(counter, key uint64) [4]uint32 {
	x0, x1, x2, x3 := uint32(counter), uint32(counter>>32), uint32(0), uint32(0)
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		p0, p1 := 0xD2511F53*uint64(x0), 0xCD9E8D57*uint64(x2)
		x0, x1, x2, x3 = uint32(p1>>32)^x1^k0, uint32(p1), uint32(p0>>32)^x3^k1, uint32(p0)
		k0, k1 = k0+0x9E3779B9, k1+0xBB67AE85
	}
	return [4]uint32{x0, x1, x2, x3}
}

// dropoutRefresh replaces the mask by the one that a forward impl writes.
func dropoutRefresh(t tensortest.TB, x *opregistry.Exec, a dropoutops.DropoutBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &stage{t: t}
	return save(t, x, dropoutops.DropoutFwd, forward, dropoutops.DropoutFwdArgs{
		Input: a.GradOutput, Out: s.out(dense, a.GradOutput.DType(), a.GradOutput.Shape()...), Mask: a.Mask,
		DropoutProbability: a.DropoutProbability, Seed: dropoutSeed, Offset: dropoutOffset, Saved: a.Saved,
	})
}

func dropoutBwdCases(d tensor.DType) []testCase[dropoutops.DropoutBwdArgs] {
	type args = dropoutops.DropoutBwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, f := range dropoutShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args { return dropoutBwdArgs(s, f.layout, d, f.shape...) })
	}
	edit := func(name string, change func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := dropoutBwdArgs(s, dense, d, 9, 21)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *stage, a *args) { a.GradInput = a.GradOutput })
	edit("p=0", func(s *stage, a *args) {
		a.DropoutProbability = 0
		s.saveMask(*a)
	})
	edit("nan_and_inf", func(s *stage, a *args) {
		v := a.GradOutput.Float64s()
		for i := range v {
			v[i] = [...]float64{math.NaN(), math.Inf(1), v[i]}[i%3]
		}
		s.fill(a.GradOutput, v)
	})
	return cases
}
