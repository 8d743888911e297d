package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// headSizes are batches, positions, heads and head sizes.
func headSizes() [][4]int {
	return [][4]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {3, 17, 2, 16}, {0, 3, 2, 4}, {2, 0, 2, 4}, {2, 3, 0, 4}, {2, 3, 2, 0}}
}

func faPrepareFwdCases(d tensor.DType) []opstest.Case[attention.FAPrepareFwdArgs] {
	var cases []opstest.Case[attention.FAPrepareFwdArgs]
	for _, n := range headSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[attention.FAPrepareFwdArgs]{Name: fmt.Sprintf("%v/%v", n, l), Make: func(s *opstest.Stage) attention.FAPrepareFwdArgs {
				return attention.FAPrepareFwdArgs{QKVI: s.In(l, d, n[1], n[0], n[2], 3*n[3]), Output: s.Out(l, d, 3, n[0], n[1], n[2], n[3])}
			}})
		}
	}
	return cases
}

func faPrepareBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, n [4]int) attention.FAPrepareBwdArgs {
	return attention.FAPrepareBwdArgs{
		Q: s.In(l, d, n[:]...), K: s.In(l, d, n[:]...), V: s.In(l, d, n[:]...), Output: s.Out(l, d, n[1], n[0], n[2], 3*n[3]),
	}
}

func faPrepareBwdCases(d tensor.DType) []opstest.Case[attention.FAPrepareBwdArgs] {
	var cases []opstest.Case[attention.FAPrepareBwdArgs]
	for _, n := range headSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[attention.FAPrepareBwdArgs]{Name: fmt.Sprintf("%v/%v", n, l), Make: func(s *opstest.Stage) attention.FAPrepareBwdArgs {
				return faPrepareBwdArgs(s, l, d, n)
			}})
		}
	}
	return append(cases, opstest.Case[attention.FAPrepareBwdArgs]{Name: "nan", Make: func(s *opstest.Stage) attention.FAPrepareBwdArgs {
		a := faPrepareBwdArgs(s, opstest.Dense, d, [4]int{2, 3, 1, 2})
		a.K.Set(math.NaN(), 1, 2, 0, 1)
		return a
	}})
}

func faPrepareGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("qkvi", attention.FAPrepareFwd, attention.FAPrepareBwd, func(s *opstest.Stage) opstest.Derivation[attention.FAPrepareFwdArgs, attention.FAPrepareBwdArgs] {
		x, y, dy, dx := s.F64In(3, 2, 2, 6), s.F64Out(3, 2, 3, 2, 2), s.F64In(3, 2, 3, 2, 2), s.F64Out(3, 2, 2, 6)
		part := func(p int) *tensor.Tensor {
			t, err := dy.Select(0, p)
			if err != nil {
				s.T.Fatalf("opstest: %v", err)
			}
			return t
		}
		return opstest.Derivation[attention.FAPrepareFwdArgs, attention.FAPrepareBwdArgs]{
			Forward: []attention.FAPrepareFwdArgs{{QKVI: x, Output: y}}, Backward: []attention.FAPrepareBwdArgs{{Q: part(0), K: part(1), V: part(2), Output: dx}},
			Y: y, DY: dy, Wrt: []opstest.Derivative{{Name: "qkvi", X: x, DX: dx}},
		}
	})}
}

// convertTHDCases returns cases that pack sequences with a row each, or the reverse.
func convertTHDCases(pack bool) func(d tensor.DType) []opstest.Case[attention.ConvertTHDArgs] {
	return func(d tensor.DType) []opstest.Case[attention.ConvertTHDArgs] {
		var cases []opstest.Case[attention.ConvertTHDArgs]
		for _, p := range append(packedCases(), packedCase{[]int{3, 1, 5}, 9, 2, 3}, packedCase{[]int{3, 1, 5}, 12, 2, 3}) {
			for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
				cases = append(cases, opstest.Case[attention.ConvertTHDArgs]{Name: fmt.Sprintf("%v/%v", p, l), Make: func(s *opstest.Stage) attention.ConvertTHDArgs {
					rows, tokens := []int{len(p.lengths), p.longest() + 1, p.heads, p.d}, []int{p.tokens, p.heads, p.d}
					if pack {
						return attention.ConvertTHDArgs{Tensor: s.In(l, d, rows...), CuSeqlens: cumulative(s, p.lengths), Output: s.Out(l, d, tokens...)}
					}
					return attention.ConvertTHDArgs{Tensor: s.In(l, d, tokens...), CuSeqlens: cumulative(s, p.lengths), Output: s.Out(l, d, rows...)}
				}})
			}
		}
		return cases
	}
}

// cacheArgs appends new tokens to caches with space for eight positions per sequence: in pages of
// size positions, or in slots of eight when size is 0.
func cacheArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, f attention.QKVFormat, size int, fresh, cached []int) attention.CopyToKVCacheArgs {
	const heads, dk, dv, capacity = 2, 3, 4, 8
	batch := len(fresh)
	a := attention.CopyToKVCacheArgs{CuNewLens: cumulative(s, fresh), CuCachedLens: cumulative(s, cached), QKVFormat: f, IsNonPaged: size == 0}
	pages, positions := batch+2, capacity
	if size > 0 {
		pages, positions = batch*capacity/size+1, size
		a.PageTable = s.Integers(tensor.I32, s.Permutation(pages)[:batch*capacity/size], batch, capacity/size)
	} else {
		slots := make([]int, batch)
		for b := range slots {
			slots[b] = b + min(b, 2) // 0, 2, 4, 5, …
		}
		a.PageTable = s.Integers(tensor.I32, slots, batch, 1)
	}
	a.KCache, a.VCache = s.In(l, d, pages, positions, heads, dk), s.In(l, d, pages, positions, heads, dv)
	longest := packedCase{lengths: fresh}.longest()
	tokens := map[attention.QKVFormat][]int{attention.SBHD: {longest, batch}, attention.BSHD: {batch, longest}, attention.THD: {opstest.Total(fresh)}}[f]
	a.NewK, a.NewV = s.In(l, d, append(tokens, heads, dk)...), s.In(l, d, append(tokens[:len(tokens):len(tokens)], heads, dv)...)
	return a
}

func kvCacheCases(d tensor.DType) []opstest.Case[attention.CopyToKVCacheArgs] {
	var cases []opstest.Case[attention.CopyToKVCacheArgs]
	add := func(name string, make func(*opstest.Stage) attention.CopyToKVCacheArgs) {
		cases = append(cases, opstest.Case[attention.CopyToKVCacheArgs]{Name: name, Make: make})
	}
	for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD, attention.THD} {
		for _, size := range []int{0, 1, 4} {
			for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
				for _, n := range [][2][]int{{{1}, {1}}, {{3, 0, 5}, {8, 2, 6}}, {{1, 1, 1, 1}, {5, 1, 8, 4}}, {{}, {}}} {
					add(fmt.Sprintf("%v/pages=%d/%v/%v", f, size, l, n), func(s *opstest.Stage) attention.CopyToKVCacheArgs { return cacheArgs(s, l, d, f, size, n[0], n[1]) })
				}
			}
		}
	}
	// Two of four sequences are left; their slots move to the front.
	add("slots_fall", func(s *opstest.Stage) attention.CopyToKVCacheArgs {
		a := cacheArgs(s, opstest.Dense, d, attention.BSHD, 0, []int{1, 1, 0, 0}, []int{5, 8, 0, 0})
		s.Fill(a.PageTable, []float64{0, 3, 1, 2})
		return a
	})
	return cases
}

func deltaNetCases(d tensor.DType) []opstest.Case[attention.GatedDeltaNetForwardArgs] {
	type args = attention.GatedDeltaNetForwardArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, n := range []attnShape{
		{b: 1, sq: 1, h: 1, dqk: 1, dv: 1}, {b: 2, sq: 7, h: 3, dqk: 4, dv: 5}, {b: 1, sq: 70, h: 1, dqk: 16, dv: 3},
		{b: 0, sq: 3, h: 2, dqk: 4, dv: 4}, {b: 2, sq: 0, h: 2, dqk: 4, dv: 4}, {b: 1, sq: 3, h: 2, dqk: 4, dv: 0},
	} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, state := range []bool{false, true} {
				for _, norm := range []bool{false, true} {
					add(fmt.Sprintf("b%d,s%d,h%d,dk%d,dv%d/%v/state=%v/norm=%v", n.b, n.sq, n.h, n.dqk, n.dv, l, state, norm), func(s *opstest.Stage) args {
						return deltaNetArgs(s, l, d, n, state, norm)
					})
				}
			}
		}
	}
	add("zero_key", func(s *opstest.Stage) args {
		a := deltaNetArgs(s, opstest.Dense, d, attnShape{b: 1, sq: 4, h: 1, dqk: 3, dv: 2}, true, true)
		for i := range 3 {
			a.Key.Set(0, 0, 2, 0, i)
		}
		return a
	})
	add("forgets", func(s *opstest.Stage) args {
		a := deltaNetArgs(s, opstest.Dense, d, attnShape{b: 1, sq: 4, h: 1, dqk: 3, dv: 2}, true, false)
		a.G.Set(math.Inf(-1), 0, 2, 0)
		return a
	})
	return cases
}

func deltaNetArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, n attnShape, state, norm bool) attention.GatedDeltaNetForwardArgs {
	a := attention.GatedDeltaNetForwardArgs{
		// Keys of norm 1 at most keep the state from growing.
		Query: s.In(l, d, n.b, n.sq, n.h, n.dqk), Key: s.Scaled(0.25, l, d, n.b, n.sq, n.h, n.dqk), Value: s.In(l, d, n.b, n.sq, n.h, n.dv),
		G: s.Out(opstest.Dense, tensor.F32, n.b, n.sq, n.h), Beta: s.Out(l, d, n.b, n.sq, n.h), UseQKL2Norm: norm, Output: s.Out(l, d, n.b, n.sq, n.h, n.dv),
	}
	for _, x := range []struct {
		t    *tensor.Tensor
		sign float64
	}{{a.G, -1}, {a.Beta, 1}} {
		v := s.In(opstest.Dense, tensor.F64, n.b, n.sq, n.h).Float64s()
		for i := range v {
			v[i] = x.sign * math.Abs(v[i])
		}
		s.Fill(x.t, v)
	}
	if state {
		a.InitialState, a.FinalState = s.In(l, tensor.F32, n.b, n.h, n.dqk, n.dv), s.Out(l, tensor.F32, n.b, n.h, n.dqk, n.dv)
	}
	return a
}
