package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// headSizes are batches, positions, heads and head sizes.
func headSizes() [][4]int {
	return [][4]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {3, 17, 2, 16}, {0, 3, 2, 4}, {2, 0, 2, 4}, {2, 3, 0, 4}, {2, 3, 2, 0}}
}

func faPrepareFwdCases(d tensor.DType) []testCase[attention.FAPrepareFwdArgs] {
	var cases []testCase[attention.FAPrepareFwdArgs]
	for _, n := range headSizes() {
		for _, l := range []layout{dense, padded, turned} {
			cases = append(cases, testCase[attention.FAPrepareFwdArgs]{fmt.Sprintf("%v/%v", n, l), func(s *stage) attention.FAPrepareFwdArgs {
				return attention.FAPrepareFwdArgs{QKVI: s.in(l, d, n[1], n[0], n[2], 3*n[3]), Output: s.out(l, d, 3, n[0], n[1], n[2], n[3])}
			}})
		}
	}
	return cases
}

func faPrepareBwdArgs(s *stage, l layout, d tensor.DType, n [4]int) attention.FAPrepareBwdArgs {
	return attention.FAPrepareBwdArgs{
		Q: s.in(l, d, n[:]...), K: s.in(l, d, n[:]...), V: s.in(l, d, n[:]...), Output: s.out(l, d, n[1], n[0], n[2], 3*n[3]),
	}
}

func faPrepareBwdCases(d tensor.DType) []testCase[attention.FAPrepareBwdArgs] {
	var cases []testCase[attention.FAPrepareBwdArgs]
	for _, n := range headSizes() {
		for _, l := range []layout{dense, padded, turned} {
			cases = append(cases, testCase[attention.FAPrepareBwdArgs]{fmt.Sprintf("%v/%v", n, l), func(s *stage) attention.FAPrepareBwdArgs {
				return faPrepareBwdArgs(s, l, d, n)
			}})
		}
	}
	return append(cases, testCase[attention.FAPrepareBwdArgs]{"nan", func(s *stage) attention.FAPrepareBwdArgs {
		a := faPrepareBwdArgs(s, dense, d, [4]int{2, 3, 1, 2})
		a.K.Set(math.NaN(), 1, 2, 0, 1)
		return a
	}})
}

func faPrepareGradCases() []gradCase {
	return []gradCase{gradient("qkvi", attention.FAPrepareFwd, attention.FAPrepareBwd, func(s *stage) derivation[attention.FAPrepareFwdArgs, attention.FAPrepareBwdArgs] {
		x, y, dy, dx := s.f64(3, 2, 2, 6), s.blank(3, 2, 3, 2, 2), s.f64(3, 2, 3, 2, 2), s.blank(3, 2, 2, 6)
		part := func(p int) *tensor.Tensor {
			t, err := dy.Select(0, p)
			if err != nil {
				s.t.Fatalf("opstest: %v", err)
			}
			return t
		}
		return derivation[attention.FAPrepareFwdArgs, attention.FAPrepareBwdArgs]{
			forward: []attention.FAPrepareFwdArgs{{QKVI: x, Output: y}}, backward: []attention.FAPrepareBwdArgs{{Q: part(0), K: part(1), V: part(2), Output: dx}},
			y: y, dy: dy, wrt: []derivative{{"qkvi", x, dx}},
		}
	})}
}

// convertTHDCases returns cases that pack sequences with a row each, or the reverse.
func convertTHDCases(pack bool) func(d tensor.DType) []testCase[attention.ConvertTHDArgs] {
	return func(d tensor.DType) []testCase[attention.ConvertTHDArgs] {
		var cases []testCase[attention.ConvertTHDArgs]
		for _, p := range append(packedCases(), packedCase{[]int{3, 1, 5}, 9, 2, 3}, packedCase{[]int{3, 1, 5}, 12, 2, 3}) {
			for _, l := range []layout{dense, padded, turned} {
				cases = append(cases, testCase[attention.ConvertTHDArgs]{fmt.Sprintf("%v/%v", p, l), func(s *stage) attention.ConvertTHDArgs {
					rows, tokens := []int{len(p.lengths), p.longest() + 1, p.heads, p.d}, []int{p.tokens, p.heads, p.d}
					if pack {
						return attention.ConvertTHDArgs{Tensor: s.in(l, d, rows...), CuSeqlens: s.cumulative(p.lengths), Output: s.out(l, d, tokens...)}
					}
					return attention.ConvertTHDArgs{Tensor: s.in(l, d, tokens...), CuSeqlens: s.cumulative(p.lengths), Output: s.out(l, d, rows...)}
				}})
			}
		}
		return cases
	}
}

// cacheArgs appends new tokens to caches with space for eight positions per sequence: in pages of
// size positions, or in slots of eight when size is 0.
func cacheArgs(s *stage, l layout, d tensor.DType, f attention.QKVFormat, size int, fresh, cached []int) attention.CopyToKVCacheArgs {
	const heads, dk, dv, capacity = 2, 3, 4, 8
	batch := len(fresh)
	a := attention.CopyToKVCacheArgs{CuNewLens: s.cumulative(fresh), CuCachedLens: s.cumulative(cached), QKVFormat: f, IsNonPaged: size == 0}
	pages, positions := batch+2, capacity
	if size > 0 {
		pages, positions = batch*capacity/size+1, size
		a.PageTable = s.integers(tensor.I32, s.permutation(pages)[:batch*capacity/size], batch, capacity/size)
	} else {
		slots := make([]int, batch)
		for b := range slots {
			slots[b] = b + min(b, 2) // 0, 2, 4, 5, …
		}
		a.PageTable = s.integers(tensor.I32, slots, batch, 1)
	}
	a.KCache, a.VCache = s.in(l, d, pages, positions, heads, dk), s.in(l, d, pages, positions, heads, dv)
	longest := packedCase{lengths: fresh}.longest()
	tokens := map[attention.QKVFormat][]int{attention.SBHD: {longest, batch}, attention.BSHD: {batch, longest}, attention.THD: {total(fresh)}}[f]
	a.NewK, a.NewV = s.in(l, d, append(tokens, heads, dk)...), s.in(l, d, append(tokens[:len(tokens):len(tokens)], heads, dv)...)
	return a
}

func kvCacheCases(d tensor.DType) []testCase[attention.CopyToKVCacheArgs] {
	var cases []testCase[attention.CopyToKVCacheArgs]
	add := func(name string, make func(*stage) attention.CopyToKVCacheArgs) {
		cases = append(cases, testCase[attention.CopyToKVCacheArgs]{name, make})
	}
	for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD, attention.THD} {
		for _, size := range []int{0, 1, 4} {
			for _, l := range []layout{dense, padded, turned} {
				for _, n := range [][2][]int{{{1}, {1}}, {{3, 0, 5}, {8, 2, 6}}, {{1, 1, 1, 1}, {5, 1, 8, 4}}, {{}, {}}} {
					add(fmt.Sprintf("%v/pages=%d/%v/%v", f, size, l, n), func(s *stage) attention.CopyToKVCacheArgs { return cacheArgs(s, l, d, f, size, n[0], n[1]) })
				}
			}
		}
	}
	// Two of four sequences are left; their slots move to the front.
	add("slots_fall", func(s *stage) attention.CopyToKVCacheArgs {
		a := cacheArgs(s, dense, d, attention.BSHD, 0, []int{1, 1, 0, 0}, []int{5, 8, 0, 0})
		s.fill(a.PageTable, []float64{0, 3, 1, 2})
		return a
	})
	return cases
}

func deltaNetCases(d tensor.DType) []testCase[attention.GatedDeltaNetForwardArgs] {
	type args = attention.GatedDeltaNetForwardArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, n := range []attnShape{
		{b: 1, sq: 1, h: 1, dqk: 1, dv: 1}, {b: 2, sq: 7, h: 3, dqk: 4, dv: 5}, {b: 1, sq: 70, h: 1, dqk: 16, dv: 3},
		{b: 0, sq: 3, h: 2, dqk: 4, dv: 4}, {b: 2, sq: 0, h: 2, dqk: 4, dv: 4}, {b: 1, sq: 3, h: 2, dqk: 4, dv: 0},
	} {
		for _, l := range []layout{dense, padded, turned} {
			for _, state := range []bool{false, true} {
				for _, norm := range []bool{false, true} {
					add(fmt.Sprintf("b%d,s%d,h%d,dk%d,dv%d/%v/state=%v/norm=%v", n.b, n.sq, n.h, n.dqk, n.dv, l, state, norm), func(s *stage) args {
						return deltaNetArgs(s, l, d, n, state, norm)
					})
				}
			}
		}
	}
	add("zero_key", func(s *stage) args {
		a := deltaNetArgs(s, dense, d, attnShape{b: 1, sq: 4, h: 1, dqk: 3, dv: 2}, true, true)
		for i := range 3 {
			a.Key.Set(0, 0, 2, 0, i)
		}
		return a
	})
	add("forgets", func(s *stage) args {
		a := deltaNetArgs(s, dense, d, attnShape{b: 1, sq: 4, h: 1, dqk: 3, dv: 2}, true, false)
		a.G.Set(math.Inf(-1), 0, 2, 0)
		return a
	})
	return cases
}

func deltaNetArgs(s *stage, l layout, d tensor.DType, n attnShape, state, norm bool) attention.GatedDeltaNetForwardArgs {
	a := attention.GatedDeltaNetForwardArgs{
		// Keys of norm 1 at most keep the state from growing.
		Query: s.in(l, d, n.b, n.sq, n.h, n.dqk), Key: s.scaled(0.25, l, d, n.b, n.sq, n.h, n.dqk), Value: s.in(l, d, n.b, n.sq, n.h, n.dv),
		G: s.out(dense, tensor.F32, n.b, n.sq, n.h), Beta: s.out(l, d, n.b, n.sq, n.h), UseQKL2Norm: norm, Output: s.out(l, d, n.b, n.sq, n.h, n.dv),
	}
	for _, x := range []struct {
		t    *tensor.Tensor
		sign float64
	}{{a.G, -1}, {a.Beta, 1}} {
		v := s.in(dense, tensor.F64, n.b, n.sq, n.h).Float64s()
		for i := range v {
			v[i] = x.sign * math.Abs(v[i])
		}
		s.fill(x.t, v)
	}
	if state {
		a.InitialState, a.FinalState = s.in(l, tensor.F32, n.b, n.h, n.dqk, n.dv), s.out(l, tensor.F32, n.b, n.h, n.dqk, n.dv)
	}
	return a
}
