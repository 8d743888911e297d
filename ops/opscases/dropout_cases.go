package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/opstest"
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
	layout opstest.Layout
} {
	return []struct {
		shape  []int
		layout opstest.Layout
	}{
		{[]int{}, opstest.Dense}, {[]int{1}, opstest.Dense}, {[]int{7}, opstest.Padded}, {[]int{8}, opstest.Dense}, {[]int{3, 5}, opstest.Padded}, {[]int{2, 3, 17}, opstest.Turned},
		{[]int{33, 65}, opstest.Dense}, {[]int{0}, opstest.Dense}, {[]int{2, 0, 3}, opstest.Dense},
	}
}

func dropoutFwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) dropoutops.DropoutFwdArgs {
	n := tensor.Shape(shape).NumElements()
	return dropoutops.DropoutFwdArgs{
		Input: s.In(l, d, shape...), Out: s.Out(l, d, shape...), Mask: s.Out(opstest.Dense, tensor.U8, (n+7)/8),
		DropoutProbability: 0.3, Seed: dropoutSeed, Offset: dropoutOffset, Saved: new(opregistry.Saved),
	}
}

func dropoutFwdCases(d tensor.DType) []opstest.Case[dropoutops.DropoutFwdArgs] {
	type args = dropoutops.DropoutFwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, f := range dropoutShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args { return dropoutFwdArgs(s, f.layout, d, f.shape...) })
	}
	if d == tensor.F32 { // more groups of four than 16 bits count
		const n = 4*manyRows + 1
		cases = append(cases, opstest.Case[args]{Name: fmt.Sprint(n), Work: rarely, Make: func(s *opstest.Stage) args { return dropoutFwdArgs(s, opstest.Dense, d, n) }})
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := dropoutFwdArgs(s, opstest.Dense, d, 9, 21)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *opstest.Stage, a *args) { a.Out = a.Input })
	edit("strided_output", func(s *opstest.Stage, a *args) { a.Out = s.Out(opstest.Turned, d, 9, 21) })
	edit("p=0", func(_ *opstest.Stage, a *args) { a.DropoutProbability = 0 })
	edit("p=0.1", func(_ *opstest.Stage, a *args) { a.DropoutProbability = 0.1 })
	// A word there lies between ⌊p·2²⁴⌋·2⁸ and the limit ⌊p·2³²⌋, is 1 less than that, and is it.
	for _, offset := range []uint64{4580348, 186613729, 334886030} {
		edit(fmt.Sprintf("p=0.1/near_the_limit/%d", offset), func(_ *opstest.Stage, a *args) { a.DropoutProbability, a.Offset = 0.1, offset })
	}
	edit("p=0.5", func(_ *opstest.Stage, a *args) { a.DropoutProbability = 0.5 })
	edit("p=0.99", func(_ *opstest.Stage, a *args) { a.DropoutProbability = 0.99 })
	edit("p_next_to_1", func(_ *opstest.Stage, a *args) { a.DropoutProbability = 1 - 0x1p-24 })
	edit("seed=0,offset=0", func(_ *opstest.Stage, a *args) { a.Seed, a.Offset = 0, 0 })
	edit("last_seed_and_offset", func(_ *opstest.Stage, a *args) { a.Seed, a.Offset = math.MaxUint64, math.MaxUint64 })
	edit("nan_and_inf", func(s *opstest.Stage, a *args) {
		v := a.Input.Float64s()
		for i := range v {
			v[i] = [...]float64{math.NaN(), math.Inf(1), v[i]}[i%3]
		}
		s.Fill(a.Input, v)
	})
	return cases
}

// dropoutBwdArgs makes the operands of a backward call with the mask that the
// documentation of dropout_fwd defines.
func dropoutBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) dropoutops.DropoutBwdArgs {
	n := tensor.Shape(shape).NumElements()
	a := dropoutops.DropoutBwdArgs{
		GradOutput: s.In(l, d, shape...), Mask: s.Out(opstest.Dense, tensor.U8, (n+7)/8), GradInput: s.Out(l, d, shape...),
		DropoutProbability: 0.3, Saved: new(opregistry.Saved),
	}
	saveMask(s, a)
	return a
}

func saveMask(s *opstest.Stage, a dropoutops.DropoutBwdArgs) {
	s.T.Helper()
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
	s.Fill(a.Mask, mask)
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
	s := &opstest.Stage{T: t}
	return opstest.RunForward(t, x, dropoutops.DropoutFwd, forward, dropoutops.DropoutFwdArgs{
		Input: a.GradOutput, Out: s.Out(opstest.Dense, a.GradOutput.DType(), a.GradOutput.Shape()...), Mask: a.Mask,
		DropoutProbability: a.DropoutProbability, Seed: dropoutSeed, Offset: dropoutOffset, Saved: a.Saved,
	})
}

func dropoutBwdCases(d tensor.DType) []opstest.Case[dropoutops.DropoutBwdArgs] {
	type args = dropoutops.DropoutBwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, f := range dropoutShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args { return dropoutBwdArgs(s, f.layout, d, f.shape...) })
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := dropoutBwdArgs(s, opstest.Dense, d, 9, 21)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *opstest.Stage, a *args) { a.GradInput = a.GradOutput })
	edit("p=0", func(s *opstest.Stage, a *args) {
		a.DropoutProbability = 0
		saveMask(s, *a)
	})
	edit("nan_and_inf", func(s *opstest.Stage, a *args) {
		v := a.GradOutput.Float64s()
		for i := range v {
			v[i] = [...]float64{math.NaN(), math.Inf(1), v[i]}[i%3]
		}
		s.Fill(a.GradOutput, v)
	})
	return cases
}
