package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
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

func attnFwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, f attention.QKVFormat, m attention.MaskType, n attnShape) attention.FusedAttnFwdArgs {
	return attention.FusedAttnFwdArgs{
		Q:         s.In(l, d, n.axes(f, n.sq, n.h, n.dqk)...),
		K:         s.In(l, d, n.axes(f, n.skv, n.g, n.dqk)...),
		V:         s.In(l, d, n.axes(f, n.skv, n.g, n.dv)...),
		O:         s.Out(l, d, n.axes(f, n.sq, n.h, n.dv)...),
		Stats:     s.Out(opstest.Dense, tensor.F32, n.stats(f)...),
		QKVFormat: f, AttnMaskType: m, Saved: new(opregistry.Saved),
	}
}

// attnCall is the part of a case that forward and backward share.
type attnCall struct {
	name   string
	layout opstest.Layout
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
				for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
					if n.sq >= 70 && (l == opstest.Padded) != (f == attention.BSHD) {
						continue // the large ones only once per format
					}
					calls = append(calls, attnCall{fmt.Sprintf("%v/%v/%v/%v", n, f, m, l), l, f, m, n})
				}
			}
		}
	}
	n := attnShape{2, 6, 6, 2, 2, 8, 8}
	return append(calls, attnCall{"turned", opstest.Turned, attention.BSHD, attention.CausalMask, n})
}

func attnFwdCases(d tensor.DType) []opstest.Case[attention.FusedAttnFwdArgs] {
	var cases []opstest.Case[attention.FusedAttnFwdArgs]
	add := func(name string, make func(*opstest.Stage) attention.FusedAttnFwdArgs) {
		cases = append(cases, opstest.Case[attention.FusedAttnFwdArgs]{Name: name, Make: make})
	}
	for _, c := range attnCalls() {
		add(c.name, func(s *opstest.Stage) attention.FusedAttnFwdArgs {
			return attnFwdArgs(s, c.layout, d, c.format, c.mask, c.shape)
		})
	}
	edit := func(name string, change func(*opstest.Stage, *attention.FusedAttnFwdArgs)) {
		add(name, func(s *opstest.Stage) attention.FusedAttnFwdArgs {
			a := attnFwdArgs(s, opstest.Dense, d, attention.BSHD, attention.CausalMask, attnShape{2, 7, 7, 4, 2, 8, 8})
			change(s, &a)
			return a
		})
	}
	for _, o := range attnOptionCases() {
		for _, f := range o.formats {
			add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *opstest.Stage) attention.FusedAttnFwdArgs {
				a := attnFwdArgs(s, opstest.Dense, d, f, o.mask, optionShape)
				o.edit(s, &a)
				return a
			})
		}
	}
	edit("max_logit", func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		a.MaxLogit = s.Out(opstest.Dense, tensor.F32, 4)
	})
	edit("max_logit/no_keys", func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		*a = attnFwdArgs(s, opstest.Dense, d, attention.BSHD, attention.NoMask, attnShape{2, 3, 0, 4, 2, 8, 8})
		a.MaxLogit = s.Out(opstest.Dense, tensor.F32, 4)
	})
	edit("max_logit/options", func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		a.MaxLogit = s.Out(opstest.Padded, tensor.F32, 4)
		a.BiasType, a.SoftmaxType, a.WindowSize = attention.ALiBi, attention.OffByOneSoftmax, attention.Window(2, 0)
	})
	edit("scale", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(1.25) })
	edit("scale=0", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(0) })
	edit("large_scores", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.AttnScale = opregistry.Float(12) })
	edit("fused_projection", func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		p := s.Parts(true, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.Q, a.K, a.V = p[0], p[1], p[2]
	})
	edit("nan_in_query", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.Q.Set(math.NaN(), 0, 3, 1, 2) })
	edit("nan_in_last_key", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		a.AttnMaskType = attention.NoMask
		a.K.Set(math.NaN(), 1, 6, 0, 0)
	})
	edit("minus_inf_score", func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) {
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

func attnBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, f attention.QKVFormat, m attention.MaskType, n attnShape) attention.FusedAttnBwdArgs {
	return attnGradient(s, l, attnFwdArgs(s, l, d, f, m, n))
}

// attnGradient makes the gradient of a forward call, with the state that it saves.
func attnGradient(s *opstest.Stage, l opstest.Layout, fwd attention.FusedAttnFwdArgs) attention.FusedAttnBwdArgs {
	d := fwd.Q.DType()
	a := attention.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, Stats: fwd.Stats,
		DO:        s.In(l, d, fwd.O.Shape()...),
		DQ:        s.Out(l, d, fwd.Q.Shape()...),
		DK:        s.Out(l, d, fwd.K.Shape()...),
		DV:        s.Out(l, d, fwd.V.Shape()...),
		QKVFormat: fwd.QKVFormat, AttnMaskType: fwd.AttnMaskType, AttnOptions: fwd.AttnOptions, Saved: fwd.Saved,
	}
	saveAttn(s, a)
	return a
}

// attnRefresh replaces O and stats by what a forward impl saves.
func attnRefresh(t tensortest.TB, x *opregistry.Exec, a attention.FusedAttnBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	return opstest.RunForward(t, x, attention.FusedAttnFwd, forward, a.Fwd())
}

func attnBwdCases(d tensor.DType) []opstest.Case[attention.FusedAttnBwdArgs] {
	var cases []opstest.Case[attention.FusedAttnBwdArgs]
	add := func(name string, make func(*opstest.Stage) attention.FusedAttnBwdArgs) {
		cases = append(cases, opstest.Case[attention.FusedAttnBwdArgs]{Name: name, Make: make})
	}
	for _, c := range attnCalls() {
		add(c.name, func(s *opstest.Stage) attention.FusedAttnBwdArgs {
			return attnBwdArgs(s, c.layout, d, c.format, c.mask, c.shape)
		})
	}
	for _, o := range attnOptionCases() {
		for _, f := range o.formats {
			add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *opstest.Stage) attention.FusedAttnBwdArgs {
				return attnOptionBwdArgs(s, d, f, o, optionShape)
			})
		}
	}
	edit := func(name string, change func(*opstest.Stage, *attention.FusedAttnBwdArgs)) {
		add(name, func(s *opstest.Stage) attention.FusedAttnBwdArgs {
			a := attnBwdArgs(s, opstest.Dense, d, attention.BSHD, attention.CausalMask, attnShape{2, 7, 7, 4, 2, 8, 8})
			change(s, &a)
			return a
		})
	}
	edit("scale", func(s *opstest.Stage, a *attention.FusedAttnBwdArgs) {
		a.AttnScale = opregistry.Float(1.25)
		saveAttn(s, *a)
	})
	edit("fused_projection", func(s *opstest.Stage, a *attention.FusedAttnBwdArgs) {
		p := s.Parts(true, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.Q, a.K, a.V = p[0], p[1], p[2]
		g := s.Parts(false, d, []int{2, 7, 0, 8}, 2, 4, 2, 2)
		a.DQ, a.DK, a.DV = g[0], g[1], g[2]
		saveAttn(s, *a)
	})
	edit("nan_in_gradient", func(s *opstest.Stage, a *attention.FusedAttnBwdArgs) {
		a.AttnMaskType = attention.NoMask
		saveAttn(s, *a)
		a.DO.Set(math.NaN(), 0, 3, 1, 2)
	})
	return cases
}
