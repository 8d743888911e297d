package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// attnShape is attention.AttnDims in the order of a case's name. With THD, sq and skv
// are the tokens of all sequences.
type attnShape struct{ b, sq, skv, h, g, dqk, dv int }

func (a attnShape) String() string {
	return fmt.Sprintf("b%d,sq%d,skv%d,h%d,g%d,dqk%d,dv%d", a.b, a.sq, a.skv, a.h, a.g, a.dqk, a.dv)
}

// axes returns the axes of an operand with s positions, n heads and size d.
func (a attnShape) axes(f attention.QKVFormat, s, n, d int) []int {
	switch f {
	case attention.SBHD:
		return []int{s, a.b, n, d}
	case attention.THD:
		return []int{s, n, d}
	default:
		return []int{a.b, s, n, d}
	}
}

// stats returns the axes of the statistics.
func (a attnShape) stats(f attention.QKVFormat) []int {
	if f == attention.THD {
		return []int{a.sq, a.h, 1}
	}
	return []int{a.b, a.h, a.sq, 1}
}

func maskTypes() []attention.MaskType {
	return []attention.MaskType{attention.NoMask, attention.CausalMask, attention.CausalBottomRightMask}
}

func attnFwdArgs(s *stage, l layout, d tensor.DType, f attention.QKVFormat, m attention.MaskType, n attnShape) attention.FusedAttnFwdArgs {
	return attention.FusedAttnFwdArgs{
		Q:         s.in(l, d, n.axes(f, n.sq, n.h, n.dqk)...),
		K:         s.in(l, d, n.axes(f, n.skv, n.g, n.dqk)...),
		V:         s.in(l, d, n.axes(f, n.skv, n.g, n.dv)...),
		O:         s.out(l, d, n.axes(f, n.sq, n.h, n.dv)...),
		Stats:     s.out(dense, tensor.F32, n.stats(f)...),
		QKVFormat: f, AttnMaskType: m, Saved: new(opregistry.Saved),
	}
}

// attnCall is the part of a case that forward and backward share.
type attnCall struct {
	name   string
	layout layout
	format attention.QKVFormat
	mask   attention.MaskType
	shape  attnShape
}

func attnCalls() []attnCall {
	var calls []attnCall
	shapes := []attnShape{
		{1, 1, 1, 1, 1, 1, 1},
		{2, 5, 5, 4, 2, 8, 8},   // grouped keys and values
		{1, 4, 9, 6, 1, 16, 16}, // one group; fewer queries than keys
		{1, 9, 4, 2, 2, 5, 3},   // more queries than keys: rows without a key
		{1, 3, 0, 2, 1, 4, 4}, {0, 3, 3, 2, 1, 4, 4}, {2, 0, 3, 2, 1, 4, 4}, {1, 3, 3, 0, 1, 4, 4},
		{2, 70, 70, 2, 1, 64, 64}, {1, 130, 67, 1, 1, 32, 48}, // larger than the tiles of any impl
	}
	for _, n := range shapes {
		for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
			for _, m := range maskTypes() {
				for _, l := range []layout{dense, padded} {
					if n.sq >= 70 && (l == padded) != (f == attention.BSHD) {
						continue // the large ones only once per format
					}
					calls = append(calls, attnCall{fmt.Sprintf("%v/%v/%v/%v", n, f, m, l), l, f, m, n})
				}
			}
		}
	}
	n := attnShape{2, 6, 6, 2, 2, 8, 8}
	return append(calls, attnCall{"turned", turned, attention.BSHD, attention.CausalMask, n})
}

func attnFwdCases(d tensor.DType) []testCase[attention.FusedAttnFwdArgs] {
	var cases []testCase[attention.FusedAttnFwdArgs]
	add := func(name string, make func(*stage) attention.FusedAttnFwdArgs) {
		cases = append(cases, testCase[attention.FusedAttnFwdArgs]{name, make})
	}
	for _, c := range attnCalls() {
		add(c.name, func(s *stage) attention.FusedAttnFwdArgs {
			return attnFwdArgs(s, c.layout, d, c.format, c.mask, c.shape)
		})
	}
	edit := func(name string, change func(*stage, *attention.FusedAttnFwdArgs)) {
		add(name, func(s *stage) attention.FusedAttnFwdArgs {
			a := attnFwdArgs(s, dense, d, attention.BSHD, attention.CausalMask, attnShape{2, 7, 7, 4, 2, 8, 8})
			change(s, &a)
			return a
		})
	}
	for _, o := range attnOptionCases() {
		for _, f := range o.formats {
			add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *stage) attention.FusedAttnFwdArgs {
				a := attnFwdArgs(s, dense, d, f, o.mask, optionShape)
				o.edit(s, &a)
				return a
			})
		}
	}
	edit("max_logit", func(s *stage, a *attention.FusedAttnFwdArgs) { a.MaxLogit = s.out(dense, tensor.F32, 4) })
	edit("max_logit/no_keys", func(s *stage, a *attention.FusedAttnFwdArgs) {
		*a = attnFwdArgs(s, dense, d, attention.BSHD, attention.NoMask, attnShape{2, 3, 0, 4, 2, 8, 8})
		a.MaxLogit = s.out(dense, tensor.F32, 4)
	})
	edit("max_logit/options", func(s *stage, a *attention.FusedAttnFwdArgs) {
		a.MaxLogit = s.out(padded, tensor.F32, 4)
		a.BiasType, a.SoftmaxType, a.WindowSize = attention.ALiBi, attention.OffByOneSoftmax, attention.Window(2, 0)
	})
	edit("scale", func(_ *stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(1.25) })
	edit("scale=0", func(_ *stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(0) })
	edit("large_scores", func(_ *stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(12) })
	edit("fused_projection", func(s *stage, a *attention.FusedAttnFwdArgs) {
		p := s.parts(true, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.Q, a.K, a.V = p[0], p[1], p[2]
	})
	edit("nan_in_query", func(_ *stage, a *attention.FusedAttnFwdArgs) { a.Q.Set(math.NaN(), 0, 3, 1, 2) })
	edit("nan_in_last_key", func(_ *stage, a *attention.FusedAttnFwdArgs) {
		a.AttnMaskType = attention.NoMask
		a.K.Set(math.NaN(), 1, 6, 0, 0)
	})
	edit("minus_inf_score", func(_ *stage, a *attention.FusedAttnFwdArgs) {
		// One key has the score −Inf for every query of its heads.
		for i := range 7 {
			for h := range 4 {
				a.Q.Set(1, 0, i, h, 0)
			}
		}
		a.AttnMaskType = attention.NoMask
		a.K.Set(math.Inf(-1), 0, 2, 0, 0)
	})
	return cases
}

func attnBwdArgs(s *stage, l layout, d tensor.DType, f attention.QKVFormat, m attention.MaskType, n attnShape) attention.FusedAttnBwdArgs {
	return attnGradient(s, l, attnFwdArgs(s, l, d, f, m, n))
}

// attnGradient makes the gradient of a forward call, with the state that it saves.
func attnGradient(s *stage, l layout, fwd attention.FusedAttnFwdArgs) attention.FusedAttnBwdArgs {
	d := fwd.Q.DType()
	a := attention.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, Stats: fwd.Stats,
		DO:        s.in(l, d, fwd.O.Shape()...),
		DQ:        s.out(l, d, fwd.Q.Shape()...),
		DK:        s.out(l, d, fwd.K.Shape()...),
		DV:        s.out(l, d, fwd.V.Shape()...),
		QKVFormat: fwd.QKVFormat, AttnMaskType: fwd.AttnMaskType, AttnOptions: fwd.AttnOptions, Saved: fwd.Saved,
	}
	s.saveAttn(a)
	return a
}

// attnRefresh replaces O and stats by what a forward impl saves.
func attnRefresh(t tensortest.TB, x *opregistry.Exec, a attention.FusedAttnBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	return save(t, x, attention.FusedAttnFwd, forward, a.Fwd())
}

func attnBwdCases(d tensor.DType) []testCase[attention.FusedAttnBwdArgs] {
	var cases []testCase[attention.FusedAttnBwdArgs]
	add := func(name string, make func(*stage) attention.FusedAttnBwdArgs) {
		cases = append(cases, testCase[attention.FusedAttnBwdArgs]{name, make})
	}
	for _, c := range attnCalls() {
		add(c.name, func(s *stage) attention.FusedAttnBwdArgs {
			return attnBwdArgs(s, c.layout, d, c.format, c.mask, c.shape)
		})
	}
	for _, o := range attnOptionCases() {
		for _, f := range o.formats {
			add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *stage) attention.FusedAttnBwdArgs {
				return attnOptionBwdArgs(s, d, f, o, optionShape)
			})
		}
	}
	edit := func(name string, change func(*stage, *attention.FusedAttnBwdArgs)) {
		add(name, func(s *stage) attention.FusedAttnBwdArgs {
			a := attnBwdArgs(s, dense, d, attention.BSHD, attention.CausalMask, attnShape{2, 7, 7, 4, 2, 8, 8})
			change(s, &a)
			return a
		})
	}
	edit("scale", func(s *stage, a *attention.FusedAttnBwdArgs) {
		a.AttnScale = opregistry.Float(1.25)
		s.saveAttn(*a)
	})
	edit("fused_projection", func(s *stage, a *attention.FusedAttnBwdArgs) {
		p := s.parts(true, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.Q, a.K, a.V = p[0], p[1], p[2]
		g := s.parts(false, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.DQ, a.DK, a.DV = g[0], g[1], g[2]
		s.saveAttn(*a)
	})
	edit("nan_in_gradient", func(s *stage, a *attention.FusedAttnBwdArgs) {
		a.AttnMaskType = attention.NoMask
		s.saveAttn(*a)
		a.DO.Set(math.NaN(), 0, 3, 1, 2)
	})
	return cases
}
