package moe

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
)

// gather copies rows: row rows[i] of in becomes row i of out, and likewise weights unless there are
// none.
type gather struct {
	host.Cut
	in, out           host.Matrix
	rows              []int32
	weights, weighted []float32
}

var gatherKernel = parallel.NewKernel((*gather).part)

func (c gather) run(e *opregistry.Exec) {
	c.Cut = host.CutItems(len(c.rows), c.in.Cols)
	gatherKernel.Run(e.Pool(), c.Parts, c)
}

func (c *gather) part(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		c.out.Take(i, &c.in, int(c.rows[i]))
		if c.weighted != nil {
			c.weighted[i] = c.weights[c.rows[i]]
		}
	}
}

// permuteByMap implements moe.MoEPermuteWithRoutingMap. Scratch: one number per expert.
func permuteByMap(e *opregistry.Exec, a moe.MoEPermuteWithRoutingMapArgs) error {
	var v host.Views
	routes, rows := v.Bytes("routing_map", a.RoutingMap), v.Int32s("sorted_indices", a.SortedIndices)
	c := gather{in: v.Matrix("tokens", a.Tokens), out: v.Matrix("output", a.Output), rows: rows}
	var probs host.Matrix
	var weighted []float32
	if a.Probs != nil {
		probs, weighted = v.Matrix("probs", a.Probs), v.Vector("output_probs", a.OutputProbs)
	}
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(routes.Cols)
	next := host.ScratchInts(scratch)
	count(next, routes)
	first := int32(0)
	for expert, n := range next {
		next[expert] = first
		first += n
	}
	for t := range routes.Rows {
		row := routes.Piece(t, 0, routes.Cols)
		for at := 0; at < len(row); at += 64 {
			for taken := takenOf(row[at:]); taken != 0; taken &= taken - 1 {
				expert := at + bits.TrailingZeros64(taken)
				to := next[expert]
				next[expert]++
				rows[to] = int32(t)
				if weighted != nil {
					weighted[to] = probs.Data[t*probs.Pitch+expert]
				}
			}
		}
	}
	e.Release(scratch)
	c.run(e)
	return nil
}

// count counts the rows of each expert. Elements of the map are 0 or 1, so that sums of 255 of them
// fit into a byte.
func count(rows []int32, routes host.Bytes) {
	clear(rows)
	for lo := 0; lo < routes.Rows; lo += math.MaxUint8 {
		hi := min(lo+math.MaxUint8, routes.Rows)
		at := 0
		for ; at+8 <= len(rows); at += 8 {
			sums := uint64(0)
			for t := lo; t < hi; t++ {
				sums += binary.LittleEndian.Uint64(routes.Data[t*routes.Pitch+at:])
			}
			for i := range 8 {
				rows[at+i] += int32(sums >> (8 * i) & math.MaxUint8)
			}
		}
		for ; at < len(rows); at++ {
			for t := lo; t < hi; t++ {
				rows[at] += int32(routes.Data[t*routes.Pitch+at])
			}
		}
	}
}

// takenOf returns a bit for each of the first 64 elements of a row of a routing map.
func takenOf(row []byte) (taken uint64) {
	row = row[:min(len(row), 64)]
	at := 0
	for ; at+8 <= len(row); at += 8 {
		const gather = 0x0102040810204080 // moves the lowest bits of 8 bytes to the highest byte
		taken |= binary.LittleEndian.Uint64(row[at:]) * gather >> 56 << at
	}
	for ; at < len(row); at++ {
		taken |= uint64(row[at]) << at
	}
	return taken
}

type sumByToken struct {
	host.Cut
	exec    *opregistry.Exec
	in, out host.Matrix
	first   []int32 // of each token among rows, and the end
	rows    []int32
}

var sumByTokenKernel = parallel.NewKernel((*sumByToken).part)

// unpermuteByMap implements moe.MoEUnpermuteWithRoutingMap. Scratch: one number per row and token,
// and two rows per part.
func unpermuteByMap(e *opregistry.Exec, a moe.MoEUnpermuteWithRoutingMapArgs) error {
	var v host.Views
	tokens := v.Int32s("sorted_indices", a.SortedIndices)
	c := sumByToken{exec: e, in: v.Matrix("permuted_tokens", a.PermutedTokens), out: v.Matrix("output", a.Output)}
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(c.out.Rows + 2 + len(tokens))
	ints := host.ScratchInts(scratch)
	c.first, c.rows = ints[:c.out.Rows+2], ints[c.out.Rows+2:]
	clear(c.first)
	for _, t := range tokens {
		c.first[t+2]++
	}
	for t := range c.out.Rows {
		c.first[t+2] += c.first[t+1]
	}
	for r, t := range tokens { // first[t+1] moves from the begin of a token to its end
		c.rows[c.first[t+1]] = int32(r)
		c.first[t+1]++
	}
	c.Cut = host.CutItems(c.out.Rows, c.out.Cols*max(len(tokens)/max(c.out.Rows, 1), 1))
	sumByTokenKernel.Run(e.Pool(), c.Parts, c)
	e.Release(scratch)
	return nil
}

func (c *sumByToken) part(part int) {
	lo, hi := c.Bounds(part)
	if !c.in.Narrow() {
		one := [...]float32{1}
		for t := lo; t < hi; t++ {
			rows := c.rows[c.first[t]:c.first[t+1]]
			if len(rows) == 1 {
				c.out.Take(t, &c.in, int(rows[0]))
				continue
			}
			vector.SumRows(c.out.Row(t), one[:], c.in.Data, c.in.Pitch, rows)
		}
		return
	}
	h := c.out.Cols
	buf := c.exec.Scratch(2 * h)
	for t := lo; t < hi; t++ {
		rows := c.rows[c.first[t]:c.first[t+1]]
		if len(rows) == 1 {
			c.out.Take(t, &c.in, int(rows[0]))
			continue
		}
		out := buf[h:]
		if len(rows) == 0 {
			clear(out)
		} else {
			vector.Add(out, c.in.Piece(int(rows[0]), 0, h, out), c.in.Piece(int(rows[1]), 0, h, buf))
			for _, r := range rows[2:] {
				vector.Add(out, out, c.in.Piece(int(r), 0, h, buf))
			}
		}
		c.out.Put(t, 0, out)
	}
	c.exec.Release(buf)
}

// sortChunks implements moe.MoESortChunksFwd. Scratch: one number per row and chunk.
func sortChunks(e *opregistry.Exec, a moe.MoESortChunksFwdArgs) error {
	var v host.Views
	sizes, order, inverse := v.Indexes("split_sizes", a.SplitSizes), v.Indexes("sorted_idxs", a.SortedIdxs), v.Indexes("inverse_row_map", a.InverseRowMap)
	c := gather{in: v.Matrix("input", a.Input), out: v.Matrix("output", a.Output)}
	if a.Probs != nil {
		c.weights, c.weighted = v.Vector("probs", a.Probs), v.Vector("output_probs", a.OutputProbs)
	}
	if v.Err != nil {
		return v.Err
	}
	chunks := a.SplitSizes.NumElements()
	scratch := e.Scratch(c.in.Rows + chunks)
	defer e.Release(scratch)
	ints := host.ScratchInts(scratch)
	first := ints[c.in.Rows:]
	c.rows = ints[:c.in.Rows]
	sum := 0
	for i := range first {
		first[i] = int32(sum)
		sum += sizes.At(i)
	}
	at := 0
	for i := range first {
		chunk := order.At(i)
		for r := range sizes.At(chunk) {
			from := int(first[chunk]) + r
			c.rows[at] = int32(from)
			inverse.Set(from, at)
			at++
		}
	}
	c.run(e)
	return nil
}

// unsortChunks implements moe.MoESortChunksBwd. Scratch: one number per row.
func unsortChunks(e *opregistry.Exec, a moe.MoESortChunksBwdArgs) error {
	var v host.Views
	rows := v.Indexes("inverse_row_map", a.InverseRowMap)
	c := gather{in: v.Matrix("grad_output", a.GradOutput), out: v.Matrix("grad_input", a.GradInput)}
	if a.GradProbs != nil {
		c.weights, c.weighted = v.Vector("grad_probs", a.GradProbs), v.Vector("grad_input_probs", a.GradInProbs)
	}
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(c.in.Rows)
	defer e.Release(scratch)
	c.rows = host.ScratchInts(scratch)
	for i := range c.rows {
		c.rows[i] = int32(rows.At(i))
	}
	c.run(e)
	return nil
}

// copyGroups implements moe.FusedMultiRowPadding and moe.FusedMultiRowUnpadding. Scratch: one
// number per row.
func copyGroups(e *opregistry.Exec, a moe.MultiRowPaddingArgs) error {
	var v host.Views
	c := padded{in: v.Matrix("input", a.Input), out: v.Matrix("output", a.Output)}
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(c.out.Rows)
	defer e.Release(scratch)
	c.rows = host.ScratchInts(scratch)
	from, to := 0, 0
	for g, n := range a.OutputRows {
		for i := range n {
			c.rows[to+i] = noRow
			if i < a.InputRows[g] {
				c.rows[to+i] = int32(from + i)
			}
		}
		from, to = from+a.InputRows[g], to+n
	}
	c.Cut = host.CutItems(c.out.Rows, c.out.Cols)
	paddedKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// noRow stands for a row of zeros.
const noRow = -1

type padded struct {
	host.Cut
	in, out host.Matrix
	rows    []int32 // of in, for each row of out
}

var paddedKernel = parallel.NewKernel((*padded).part)

func (c *padded) part(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		if c.rows[i] == noRow {
			c.out.Zero(i)
		} else {
			c.out.Take(i, &c.in, int(c.rows[i]))
		}
	}
}
