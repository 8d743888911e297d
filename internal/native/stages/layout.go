package stages

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/pipeline"
)

// ParseLayout returns the parts of a model of so many layers, in its order, that a layout in
// Megatron's notation gives to the stages: the same number to each.
func ParseLayout(text string, stages, layers int) ([]model.Stretch, error) {
	rows, err := pipeline.Layout(text)
	if err != nil {
		return nil, fmt.Errorf("given %q, want letters E, t and L with | between stages: %w", text, err)
	}
	if len(rows)%stages != 0 {
		return nil, fmt.Errorf("given %q with %d parts, want a multiple of pipeline_model_parallel_size %d", text, len(rows), stages)
	}
	parts := make([]model.Stretch, len(rows))
	next := 0
	for i, row := range rows {
		part := model.Stretch{Layers: model.Range{Lo: next}}
		for at, letter := range row {
			switch {
			case letter == 't':
				next++
			case letter == 'E' && i == 0 && at == 0:
				part.First = true
			case letter == 'L' && i == len(rows)-1 && at == len(row)-1:
				part.Last = true
			default:
				return nil, fmt.Errorf("given %q with %q at position %d of part %d, want t, and E at the very beginning and L at the very end", text, letter, at, i)
			}
		}
		if row == "" {
			return nil, fmt.Errorf("given %q, in which part %d is empty, want a letter in each", text, i)
		}
		part.Layers.Hi = next
		parts[i] = part
	}
	switch {
	case !parts[0].First || !parts[len(parts)-1].Last:
		return nil, fmt.Errorf("given %q, want E at the very beginning and L at the very end", text)
	case next != layers:
		return nil, fmt.Errorf("given %q with %d layers (t), want num_layers %d", text, next, layers)
	}
	return parts, nil
}

// Text writes parts in Megatron's notation.
func Text(parts []model.Stretch) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('|')
		}
		if p.First {
			b.WriteByte('E')
		}
		switch n := p.Layers.Hi - p.Layers.Lo; {
		case n == 1:
			b.WriteByte('t')
		case n > 1:
			b.WriteString("t*" + strconv.Itoa(n))
		}
		if p.Last {
			b.WriteByte('L')
		}
	}
	return b.String()
}

// Describe writes what a stage computes in Megatron's notation, its chunks one after the other.
func (p *Plan) Describe(stage int) string { return strings.ReplaceAll(Text(p.Of(stage)), "|", " and ") }

// equal divides layers into n parts of as many layers.
func equal(n, layers int) []model.Stretch {
	var counts []int
	for range n {
		counts = append(counts, layers/n)
	}
	return stretches(counts)
}

// stretches returns parts of so many layers each.
func stretches(counts []int) []model.Stretch {
	parts := make([]model.Stretch, len(counts))
	next := 0
	for i, n := range counts {
		parts[i] = model.Stretch{Layers: model.Range{Lo: next, Hi: next + n}, First: i == 0, Last: i == len(counts)-1}
		next += n
	}
	return parts
}

// Divide divides layers into n parts, each with a layer, of which the most expensive one costs as
// little as possible, and the others are as even as possible beside it: the sum of the squares of
// all costs is least. It returns nil for fewer layers than parts.
func Divide(n, layers int, costs Costs) []model.Stretch {
	if n < 1 || layers < n {
		return nil
	}
	at := func(part, count int) float64 {
		return costs.cost(model.Stretch{Layers: model.Range{Hi: count}, First: part == 0, Last: part == n-1})
	}
	type best struct {
		most, squares float64
		count         int // layers of the last part
	}
	rows := make([][]best, n) // by part and the layers up to its end
	for part := range rows {
		rows[part] = make([]best, layers+1)
		for end := part + 1; end <= layers-(n-1-part); end++ {
			for count := 1; count <= end-part; count++ {
				b := best{0, 0, count}
				switch {
				case part > 0:
					before := rows[part-1][end-count]
					b.most, b.squares = before.most, before.squares
				case count != end:
					continue
				}
				c := at(part, count)
				b.most, b.squares = max(b.most, c), b.squares+c*c
				if old := rows[part][end]; old.count == 0 || b.most < old.most || b.most == old.most && b.squares < old.squares {
					rows[part][end] = b
				}
			}
		}
	}
	counts := make([]int, n)
	for part, end := n-1, layers; part >= 0; part-- {
		counts[part] = rows[part][end].count
		end -= counts[part]
	}
	return stretches(counts)
}
