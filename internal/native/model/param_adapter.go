package model

import (
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// AdapterWeights are the two matrices of an adapter, for the outputs lo to hi of a projection.
type AdapterWeights struct {
	A, B   *Param
	Lo, Hi int
}

// adapt makes the adapters of a projection of in to out columns, whose rows are those of parts
// or, without parts, of the projection itself.
func (b *WeightBuilder) adapt(name string, out, in int, parts []part) []AdapterWeights {
	c := b.cfg
	if !c.Adapts() {
		return nil
	}
	if len(parts) == 0 {
		parts = []part{{Name: name, Rows: out}}
	}
	var all []AdapterWeights
	from := 0
	for _, p := range parts {
		lo, hi := from, from+p.Rows
		from = hi
		if c.Targets != nil && !slices.Contains(c.Targets, p.Name[strings.LastIndexByte(p.Name, '.')+1:]) {
			continue
		}
		w := AdapterWeights{Lo: lo, Hi: hi}
		w.A = &Param{Name: p.Name + ".lora_A.weight", Shape: tensor.Shape{c.Rank, in}, start: Start{bound: 1 / math.Sqrt(float64(in))}}
		w.B = &Param{Name: p.Name + ".lora_B.weight", Shape: tensor.Shape{p.Rows, c.Rank}}
		for _, matrix := range []*Param{w.A, w.B} {
			matrix.Decay, matrix.Depth = true, b.Depth
			b.Adapters = append(b.Adapters, matrix)
		}
		all = append(all, w)
	}
	return all
}

// share leaves a rank its part of B, of the groups of outputs of the projection, or of A without
// groups, which is its share of the inputs.
func (w *AdapterWeights) share(groups []int, rank, ranks int) {
	if groups == nil {
		in := w.A.Shape[1]
		w.A.Slice = Slice{Whole: w.A.Shape, Cols: []Range{Share(in, rank, ranks)}}
		w.A.Shape = w.A.Slice.Shape()
		return
	}
	rows := []Range{} // those of the adapter
	lo, hi, at := w.Lo, w.Hi, 0
	for _, r := range Shares(groups, rank, ranks) {
		switch {
		case r.Hi <= lo:
			w.Lo = at + r.Hi - r.Lo
		case r.Lo < hi:
			rows = append(rows, Range{Lo: r.Lo - lo, Hi: r.Hi - lo})
			w.Hi = at + r.Hi - r.Lo
		}
		at += r.Hi - r.Lo
	}
	w.B.Slice = Slice{Whole: w.B.Shape, Rows: rows}
	w.B.Shape = w.B.Slice.Shape()
}
