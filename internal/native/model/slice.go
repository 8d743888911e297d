package model

import "github.com/primus-fl/primus/tensor"

// Range is the elements Lo to Hi of an axis.
type Range struct{ Lo, Hi int }

// Slice is the part of a weight that a rank has. The weight is a matrix, or a vector, which is a
// matrix of one column.
type Slice struct {
	Whole tensor.Shape // of the weight
	Rows  []Range      // in the order in which the rank has them; nil for all
	Cols  []Range      // nil for all
}

// matrix returns the numbers of rows and columns of a shape.
func matrix(s tensor.Shape) (rows, cols int) {
	if len(s) < 2 {
		return s.NumElements(), 1
	}
	return s[0], s[1:].NumElements()
}

// Shape returns the shape of the part.
func (s Slice) Shape() tensor.Shape {
	shape := append(tensor.Shape(nil), s.Whole...)
	if s.Rows != nil {
		shape[0] = length(s.Rows)
	}
	if s.Cols != nil {
		shape[1] = length(s.Cols)
	}
	return shape
}

func length(ranges []Range) int {
	n := 0
	for _, r := range ranges {
		n += r.Hi - r.Lo
	}
	return n
}

// Runs calls yield for the elements lo to hi of the part, in runs of elements that follow each
// other in the whole weight too: n elements from at on in the part are those from to on in the
// weight.
func (s Slice) Runs(lo, hi int, yield func(at, to, n int)) {
	wholeRows, wholeCols := matrix(s.Whole)
	rows, cols := s.Rows, s.Cols
	if rows == nil {
		rows = []Range{{0, wholeRows}}
	}
	if cols == nil { // whole rows follow each other
		at := 0
		for _, r := range rows {
			n := (r.Hi - r.Lo) * wholeCols
			if from, to := max(lo, at), min(hi, at+n); from < to {
				yield(from, r.Lo*wholeCols+from-at, to-from)
			}
			at += n
		}
		return
	}
	at := 0
	for _, r := range rows {
		for row := r.Lo; row < r.Hi; row++ {
			for _, c := range cols {
				n := c.Hi - c.Lo
				if from, to := max(lo, at), min(hi, at+n); from < to {
					yield(from, row*wholeCols+c.Lo+from-at, to-from)
				}
				at += n
			}
		}
	}
}

// Share returns the part of n elements that a rank has of them, when all have equal ones.
func Share(n, rank, ranks int) Range { return Range{n / ranks * rank, n / ranks * (rank + 1)} }

// Portion returns the part of n elements that a rank has of them, when parts differ by one at most.
func Portion(n, rank, ranks int) Range { return Range{n * rank / ranks, n * (rank + 1) / ranks} }

// PortionOf returns the rank that has an element.
func PortionOf(element, n, ranks int) int { return ((element+1)*ranks - 1) / n }

// Shares returns the parts of several groups of elements, one group after the other.
func Shares(groups []int, rank, ranks int) []Range {
	var all []Range
	from := 0
	for _, n := range groups {
		share := Share(n, rank, ranks)
		all = append(all, Range{from + share.Lo, from + share.Hi})
		from += n
	}
	return all
}

// Projection returns the parts that a rank has of the weight [out in] of a projection, or [in out]
// with inOut, and of its bias [out]. With groups it has its share of each group of outputs, and
// otherwise its share of the inputs, and the whole bias.
func Projection(weight tensor.Shape, inOut bool, groups []int, rank, ranks int) (w, bias Slice) {
	w.Whole = weight
	in, out := &w.Cols, &w.Rows
	outputs, inputs := weight[0], weight[1]
	if inOut {
		in, out, outputs, inputs = out, in, inputs, outputs
	}
	bias.Whole = tensor.Shape{outputs}
	if groups == nil {
		*in = []Range{Share(inputs, rank, ranks)}
		return w, bias
	}
	*out = Shares(groups, rank, ranks)
	bias.Rows = *out
	return w, bias
}
