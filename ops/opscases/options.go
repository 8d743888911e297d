package opscases

import (
	"math"

	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// optionShape is the shape of the cases with options. With THD its positions are
// the tokens of all sequences.
var optionShape = attnShape{2, 7, 9, 4, 2, 4, 5}

// attnEdit changes a call of optionShape or of a smaller one.
type attnEdit func(*opstest.Stage, *attention.FusedAttnFwdArgs)

// attnOption is a case of attention with options.
type attnOption struct {
	name    string
	mask    attention.MaskType
	formats []attention.QKVFormat
	edits   []attnEdit
}

func (o attnOption) edit(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	if o.mask.Padding() {
		lengths(s, a)
	}
	for _, e := range o.edits {
		e(s, a)
	}
}

func attnOptionCases() []attnOption {
	one, plain, packed := []attention.QKVFormat{attention.BSHD}, []attention.QKVFormat{attention.SBHD, attention.BSHD}, []attention.QKVFormat{attention.THD}
	cases := []attnOption{
		{"window=2,0", attention.NoMask, one, []attnEdit{window(2, 0)}},
		{"window=0,0", attention.NoMask, one, []attnEdit{window(0, 0)}},
		{"window=-1,1", attention.NoMask, one, []attnEdit{window(-1, 1)}},
		{"window=3,-1/bottom_right", attention.NoMask, plain, []attnEdit{window(3, -1), toBottomRight}},
		{"window=1,2", attention.CausalMask, plain, []attnEdit{window(1, 2)}},
		{"window=2,0", attention.CausalBottomRightMask, plain, []attnEdit{window(2, 0)}},
		{"window=1,1/bottom_right", attention.PaddingMask, packed, []attnEdit{window(1, 1), toBottomRight}},
		{"no_sequence", attention.PaddingMask, packed, []attnEdit{noSequence}},
		{"mask=b1qk", attention.ArbitraryMask, plain, []attnEdit{hide(true, false, true)}},
		{"mask=bhqk", attention.ArbitraryMask, one, []attnEdit{hide(true, true, true)}},
		{"mask=111k", attention.ArbitraryMask, one, []attnEdit{hide(false, false, false)}},
		{"mask_all", attention.ArbitraryMask, one, []attnEdit{hideAll}},
		{"alibi", attention.CausalMask, plain, []attnEdit{alibi}},
		{"alibi", attention.CausalBottomRightMask, one, []attnEdit{alibi}},
		{"alibi/bottom_right", attention.NoMask, one, []attnEdit{alibi, toBottomRight}},
		{"alibi/slopes=h", attention.PaddingMask, one, []attnEdit{alibi, slopes(false)}},
		{"alibi/slopes=bh", attention.PaddingCausalBottomRightMask, packed, []attnEdit{alibi, slopes(true)}},
		{"off_by_one", attention.CausalBottomRightMask, plain, []attnEdit{offByOne}},
		{"off_by_one/mask_all", attention.ArbitraryMask, one, []attnEdit{offByOne, hideAll}},
		{"learnable", attention.CausalMask, plain, []attnEdit{learnable}},
		{"learnable", attention.PaddingMask, packed, []attnEdit{learnable}},
		{"dropout=0.25", attention.NoMask, plain, []attnEdit{dropout(0.25)}},
		{"dropout=0.6", attention.PaddingCausalMask, packed, []attnEdit{dropout(0.6)}},
		{"softcap=0.5", attention.CausalMask, plain, []attnEdit{softcap(0.5)}},
		{"softcap=0.25", attention.PaddingCausalMask, packed, []attnEdit{softcap(0.25)}},
		{"softcap=50/pre_scale_bias", attention.NoMask, one, []attnEdit{softcap(50), bias(attention.PreScaleBias, false, true, true)}},
		{"softcap=0.25/pre_scale_bias", attention.NoMask, one, []attnEdit{softcap(0.25), bias(attention.PreScaleBias, true, true, true)}},
		{"softcap=0.25/post_scale_bias", attention.NoMask, one, []attnEdit{softcap(0.25), bias(attention.PostScaleBias, true, true, true)}},
		{"everything", attention.CausalBottomRightMask, plain, []attnEdit{window(4, 0), bias(attention.PostScaleBias, false, true, true), learnable, dropout(0.25)}},
		{"everything", attention.PaddingCausalMask, packed, []attnEdit{gaps, window(4, 0), alibi, offByOne, dropout(0.25)}},
		{"everything/softcap", attention.CausalBottomRightMask, one, []attnEdit{window(4, 0), alibi, learnable, dropout(0.25), softcap(0.5)}},
	}
	for _, m := range []attention.MaskType{attention.PaddingMask, attention.PaddingCausalMask, attention.PaddingCausalBottomRightMask} {
		cases = append(cases, attnOption{"lengths", m, plain, nil}, attnOption{"packed", m, packed, nil}, attnOption{"gaps", m, packed, []attnEdit{gaps}})
	}
	for _, t := range []attention.BiasType{attention.PreScaleBias, attention.PostScaleBias} {
		cases = append(cases,
			attnOption{t.String() + "=1hqk", attention.CausalMask, plain, []attnEdit{bias(t, false, true, true)}},
			attnOption{t.String() + "=b1qk", attention.NoMask, one, []attnEdit{bias(t, true, false, true)}},
			attnOption{t.String() + "=bhqk", attention.PaddingMask, one, []attnEdit{bias(t, true, true, true)}},
			attnOption{t.String() + "=111k", attention.NoMask, one, []attnEdit{bias(t, false, false, false)}},
		)
	}
	return cases
}

// lengths gives the first sequence most positions of its keys and fewer of its queries, gives the
// second some of each, and leaves at least one position unused.
func lengths(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	n := attnAxes(a)
	q, kv := []float64{0, 3, 5}, []float64{0, 4, 6}
	if a.QKVFormat != attention.THD { // each sequence has its own entry of an axis
		q, kv = []float64{0, float64(n.sq - 1), float64(n.sq + 1)}, []float64{0, float64(n.skv), float64(n.skv + 1)}
	}
	a.CuSeqlensQ, a.CuSeqlensKV = s.Values(tensor.I32, q...), s.Values(tensor.I32, kv...)
}

// gaps leaves a token after each of the sequences that lengths made.
func gaps(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.CuSeqlensQPadded, a.CuSeqlensKVPadded = s.Values(tensor.I32, 0, 4, 6), s.Values(tensor.I32, 0, 5, 7)
}

func noSequence(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.CuSeqlensQ, a.CuSeqlensKV = s.Values(tensor.I32, 0), s.Values(tensor.I32, 0)
}

// attnAxes returns the sizes of a call whose cumulative lengths may be missing.
func attnAxes(a *attention.FusedAttnFwdArgs) attnShape {
	q, v := a.Q.Shape(), a.V.Shape()
	switch a.QKVFormat {
	case attention.SBHD:
		return attnShape{b: q[1], sq: q[0], skv: v[0], h: q[2]}
	case attention.THD:
		return attnShape{b: 2, sq: q[0], skv: v[0], h: q[1]}
	default:
		return attnShape{b: q[0], sq: q[1], skv: v[1], h: q[2]}
	}
}

// scoreAxes returns the axes of the scores, with a length of 1 for those that are not wanted.
func scoreAxes(a *attention.FusedAttnFwdArgs, b, h, q bool) []int {
	n := attnAxes(a)
	axes := []int{1, 1, 1, n.skv}
	for i, wanted := range []bool{b, h, q} {
		if wanted {
			axes[i] = []int{n.b, n.h, n.sq}[i]
		}
	}
	return axes
}

func window(left, right int) attnEdit {
	return func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.WindowSize = attention.Window(left, right) }
}

func toBottomRight(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.BottomRightDiagonal = opregistry.Bool(true)
}

// hide hides about a third of the keys.
func hide(b, h, q bool) attnEdit {
	return func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		axes := scoreAxes(a, b, h, q)
		a.AttentionMask = s.Out(opstest.Padded, tensor.Bool, axes...)
		v := s.In(opstest.Dense, tensor.F64, axes...).Float64s()
		for i := range v {
			v[i] = max(0, math.Floor(v[i]+2.0/3)) // 1 above 1/3
		}
		s.Fill(a.AttentionMask, v)
	}
}

func hideAll(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.AttentionMask = s.Out(opstest.Dense, tensor.Bool, 1, 1, 1, 1)
	s.Fill(a.AttentionMask, []float64{1})
}

func bias(t attention.BiasType, b, h, q bool) attnEdit {
	return func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		a.BiasType, a.Bias = t, s.In(opstest.Dense, a.Q.DType(), scoreAxes(a, b, h, q)...)
	}
}

func alibi(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.BiasType = attention.ALiBi }

func slopes(byBatch bool) attnEdit {
	return func(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		n := attnAxes(a)
		if byBatch {
			a.AlibiSlopes = s.In(opstest.Dense, tensor.F32, n.b, n.h)
		} else {
			a.AlibiSlopes = s.In(opstest.Dense, tensor.F32, n.h)
		}
	}
}

func offByOne(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.SoftmaxType = attention.OffByOneSoftmax
}

func learnable(s *opstest.Stage, a *attention.FusedAttnFwdArgs) {
	a.SoftmaxType, a.SoftmaxOffset = attention.LearnableSoftmax, s.Short(tensor.F32, 1, attnAxes(a).h, 1, 1)
}

func softcap(limit float32) attnEdit {
	return func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) { a.Softcap = limit }
}

func dropout(p float32) attnEdit {
	return func(_ *opstest.Stage, a *attention.FusedAttnFwdArgs) {
		a.PDropout, a.RNGSeed, a.RNGOffset = p, 0x123456789abcdef0, 1<<32-3
	}
}

// attnOptionBwdArgs makes the gradient of a call with options.
func attnOptionBwdArgs(s *opstest.Stage, d tensor.DType, f attention.QKVFormat, o attnOption, n attnShape) attention.FusedAttnBwdArgs {
	fwd := attnFwdArgs(s, opstest.Dense, d, f, o.mask, n)
	o.edit(s, &fwd)
	a := attnGradient(s, opstest.Dense, fwd)
	if a.Bias != nil {
		a.DBias = s.Out(opstest.Dense, d, a.Bias.Shape()...)
	}
	if a.SoftmaxOffset != nil {
		a.DSoftmaxOffset = s.Out(opstest.Dense, tensor.F32, a.SoftmaxOffset.Shape()...)
	}
	return a
}

// saveAttn writes the O and the statistics that the documentation of fused_attn_fwd defines. A
// float64 can hold the exponentials of the scores that the cases make, so no maximum is subtracted.
func saveAttn(s *opstest.Stage, a attention.FusedAttnBwdArgs) {
	if s.OnlyShapes() {
		return
	}
	f := a.Fwd()
	n := f.Dims()
	o := make([]float64, a.O.NumElements())
	stats := make([]float64, a.Stats.NumElements())
	for i := range stats {
		stats[i] = math.Inf(-1)
	}
	scale := float64(a.AttnScale.Or(float32(1 / math.Sqrt(float64(n.DimQK)))))
	x := &attnScores{FusedAttnFwdArgs: f, AttnDims: n, scale: scale, q: a.Q.Float64s(), k: a.K.Float64s(), v: a.V.Float64s()}
	for b := range n.Batch {
		seq := f.Sequence(b)
		for h := range n.Heads {
			for i := range seq.LenQ {
				at := (b*n.Heads+h)*n.SeqQ + i
				if f.QKVFormat == attention.THD {
					at = (seq.FirstQ+i)*n.Heads + h
				}
				out := x.at(n.SeqQ, n.Heads, n.DimV, b, seq.FirstQ+i, h)
				stats[at] = math.Log(x.query(o[out:out+n.DimV], seq, b, h, i))
			}
		}
	}
	s.Fill(a.O, o)
	s.Fill(a.Stats, stats)
}

// attnScores is a call whose scores saveAttn computes.
type attnScores struct {
	attention.FusedAttnFwdArgs
	attention.AttnDims
	scale   float64
	q, k, v []float64
}

// at returns where a head of size d of n heads and seq positions begins.
func (x *attnScores) at(seq, n, d, b, row, h int) int {
	switch x.QKVFormat {
	case attention.SBHD:
		return ((row*x.Batch+b)*n + h) * d
	case attention.THD:
		return (row*n + h) * d
	default:
		return ((b*seq+row)*n + h) * d
	}
}

// query writes a row of O and returns the denominator of its softmax.
func (x *attnScores) query(o []float64, seq attention.Sequence, b, h, i int) float64 {
	g := h * x.Groups / x.Heads
	query := x.at(x.SeqQ, x.Heads, x.DimQK, b, seq.FirstQ+i, h)
	sum := 0.0
	switch x.SoftmaxType {
	case attention.OffByOneSoftmax:
		sum = 1
	case attention.LearnableSoftmax:
		sum = math.Exp(x.SoftmaxOffset.At(0, h, 0, 0))
	case attention.VanillaSoftmax:
	default:
		panic("BUG: opscases: unknown type of softmax")
	}
	diagonal := i
	if x.BottomRight() {
		diagonal += seq.LenKV - seq.LenQ
	}
	for j := range seq.LenKV {
		distance := j - diagonal
		if x.hides(distance, b, h, i, j) {
			continue
		}
		key, value := x.at(x.SeqKV, x.Groups, x.DimQK, b, seq.FirstKV+j, g), x.at(x.SeqKV, x.Groups, x.DimV, b, seq.FirstKV+j, g)
		product := 0.0
		for d := range x.DimQK {
			product += x.q[query+d] * x.k[key+d]
		}
		weight := math.Exp(x.score(product, distance, b, h, i, j))
		sum += weight
		if x.PDropout > 0 {
			n := ((b*x.Heads+h)*x.SeqQ+i)*x.SeqKV + j
			if float64(random.Bits(x.RNGSeed, x.RNGOffset, uint64(n)))/(1<<32) < float64(x.PDropout) {
				weight = 0
			}
			weight /= 1 - float64(x.PDropout)
		}
		for d := range o {
			o[d] += weight * x.v[value+d]
		}
	}
	for d := range o {
		if sum > 0 {
			o[d] /= sum
		}
	}
	return sum
}

func (x *attnScores) hides(distance, b, h, i, j int) bool {
	left, right := x.WindowSize.Bounds()
	return distance > 0 && x.AttnMaskType.Causal() || left >= 0 && distance < -left || right >= 0 && distance > right ||
		x.AttentionMask != nil && repeated(x.AttentionMask, b, h, i, j) != 0
}

func (x *attnScores) score(product float64, distance, b, h, i, j int) float64 {
	if x.BiasType == attention.PreScaleBias {
		product += repeated(x.Bias, b, h, i, j)
	}
	score := x.scale * product
	if c := float64(x.Softcap); c != 0 {
		score = c * math.Tanh(score/c)
	}
	switch x.BiasType {
	case attention.PostScaleBias:
		return score + repeated(x.Bias, b, h, i, j)
	case attention.ALiBi:
		slope := float64(attention.DefaultAlibiSlopes(x.Heads)[h])
		if t := x.AlibiSlopes; t != nil && len(t.Shape()) == 1 {
			slope = t.At(h)
		} else if t != nil {
			slope = t.At(b, h)
		}
		return score - slope*math.Abs(float64(distance))
	case attention.NoBias, attention.PreScaleBias:
		return score
	default:
		panic("BUG: opscases: unknown type of bias")
	}
}

// repeated returns an element of a tensor that is repeated along axes of length 1.
func repeated(t *tensor.Tensor, index ...int) float64 {
	for axis, n := range t.Shape() {
		index[axis] = min(index[axis], n-1)
	}
	return t.At(index...)
}
