package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Auto is the name of the schedule that Search finds.
const Auto = "auto"

// ErrMicroBatches is part of the error for a schedule that needs more micro batches.
var ErrMicroBatches = errors.New("micro batches")

// generator makes the table of a named schedule.
type generator struct {
	name      string
	about     string
	chunks    int // that it has, 0 for any number
	usual     int // number of chunks where any is possible, 0 for the chosen one
	placement Placement
	micro     int // it needs this many micro batches for each rank
	make      func(s Shape, times Times) Table
}

// generators are the named schedules.
//
// Sources: gpipe, Huang et al. 2018, arXiv:1811.06965; 1f1b and interleaved, Narayanan et al. 2021,
// arXiv:2104.04473; zb1p, which is ZB-H1, and zbv, Qi et al. 2023, arXiv:2401.10241; v-half and
// v-min, Qi et al. 2024, arXiv:2405.15362; dualpipe-v, DeepSeek-AI 2024, arXiv:2412.19437, section
// 3.2.1, with the ranks folded into a V.
func generators() []generator {
	return []generator{
		{"gpipe", "all forward passes, then all backward passes", 1, 0, Loop, 0, gpipe},
		{"1f1b", "a forward pass after each backward pass, which holds a micro batch per stage", 1, 0, Loop, 0, oneForwardOneBackward},
		{"interleaved", "1f1b with several chunks per stage: less waiting, more messages", 0, 0, Loop, 0, interleaved},
		{"zb1p", "1f1b with the gradients of weights where stages wait (ZB-H1)", 0, 1, Loop, 0, zeroBubble},
		{"zbv", "two chunks in the shape of a V, nearly no waiting, the memory of 1f1b", 2, 0, Vee, 0, zeroBubbleV},
		{"v-half", "two chunks in the shape of a V, half the memory of 1f1b", 2, 0, Vee, 0, vHalf},
		{"v-min", "two chunks in the shape of a V, a third of the memory of 1f1b", 2, 0, Vee, 0, vMin},
		{"dualpipe-v", "two chunks in the shape of a V, forward and backward passes side by side", 2, 0, Vee, 2, dualPipeV},
	}
}

// Names returns the names of the schedules, auto last.
func Names() []string {
	var names []string
	for _, g := range generators() {
		names = append(names, g.name)
	}
	return append(names, Auto)
}

// About describes a schedule in a line.
func About(name string) string {
	if g, ok := find(name); ok {
		return g.about
	}
	return "the fastest that a search finds for the given times within the memory"
}

func find(name string) (generator, bool) {
	all := generators()
	i := slices.IndexFunc(all, func(g generator) bool { return g.name == name })
	if i < 0 {
		return generator{}, false
	}
	return all[i], true
}

// Chunks returns how many chunks a rank has in a schedule, given the number where it can be chosen.
func Chunks(name string, chosen int) int {
	g, _ := find(name)
	return cmp.Or(g.chunks, g.usual, chosen)
}

// Limit returns the most chunks that a rank holds in a table of a schedule, 0 if there is no limit
// that is smaller than all that it has.
func Limit(name string, ranks int) int {
	switch name {
	case "zb1p":
		return ranks
	case "zbv":
		return 2 * ranks
	case "v-half":
		return halfBlock.plans(Shape{Ranks: ranks, MicroBatches: 1, Chunks: 2, Placement: Vee})[0].limit
	case "v-min":
		return minBlock.plans(Shape{Ranks: ranks, MicroBatches: 1, Chunks: 2, Placement: Vee})[0].limit
	}
	return 0
}

// Generate returns the table of a named schedule. It passes Check. Where the schedule leaves open
// when the gradients of weights are computed, the times decide.
func Generate(name string, ranks, microBatches, chunks int, times Times) (Table, error) {
	g, ok := find(name)
	if !ok {
		return Table{}, fmt.Errorf("pipeline: given the schedule %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	s := Shape{ranks, microBatches, chunks, g.placement}
	if err := s.Validate(); err != nil {
		return Table{}, err
	}
	if g.chunks > 0 && chunks != g.chunks {
		return Table{}, fmt.Errorf("pipeline: given %d chunks for %s, want %d", chunks, name, g.chunks)
	}
	if microBatches < g.micro*ranks {
		return Table{}, fmt.Errorf("pipeline: given %d %w for %s on %d stages, want at least %d", microBatches, ErrMicroBatches, name, ranks, g.micro*ranks)
	}
	if err := times.Validate(s); err != nil {
		return Table{}, err
	}
	t := g.make(s, times)
	t.Name, t.Shape = name, s
	return t, nil
}

// tableOf makes a table of a function that returns the passes of a rank.
func tableOf(s Shape, passes func(rank int) []Pass) Table {
	t := Table{Shape: s, Passes: make([][]Pass, s.Ranks)}
	for rank := range t.Passes {
		t.Passes[rank] = passes(rank)
	}
	return t
}

func gpipe(s Shape, _ Times) Table {
	return tableOf(s, func(int) []Pass {
		list := make([]Pass, 0, 2*s.MicroBatches)
		for _, kind := range []Kind{Forward, Backward} {
			for i := range s.MicroBatches {
				list = append(list, Pass{kind, i, 0})
			}
		}
		return list
	})
}

func oneForwardOneBackward(s Shape, _ Times) Table {
	return Table{Passes: alternate(s, Backward, 1, s.Ranks)}
}

// alternate is the order of 1F1B: the last stage has one forward pass ahead, every stage before it
// slope more, and none has more than most.
func alternate(s Shape, backward Kind, slope, most int) [][]Pass {
	return tableOf(s, func(rank int) []Pass {
		var forward, back []Pass
		for i := range s.MicroBatches {
			forward = append(forward, Pass{Forward, i, 0})
			back = append(back, Pass{backward, i, 0})
		}
		return oneByOne(forward, back, min(slope*(s.Ranks-1-rank)+1, most))
	}).Passes
}

// oneByOne runs some forward passes ahead, then a backward and a forward pass in turn.
func oneByOne(forward, backward []Pass, ahead int) []Pass {
	ahead = min(ahead, len(forward))
	list := append(make([]Pass, 0, len(forward)+len(backward)), forward[:ahead]...)
	for i, b := range backward {
		list = append(list, b)
		if ahead+i < len(forward) {
			list = append(list, forward[ahead+i])
		}
	}
	return list
}

func interleaved(s Shape, _ Times) Table { return Table{Passes: interleave(s, Backward)} }

// interleave runs the chunks in turn, each on a group of micro batches. Groups have at least as
// many micro batches as there are ranks: with less, ranks would wait for each other. Fewer micro
// batches than ranks are one group, of which all forward passes come first.
func interleave(s Shape, backward Kind) [][]Pass {
	if s.Chunks == 1 {
		return alternate(s, backward, 1, s.Ranks)
	}
	groups := max(1, s.MicroBatches/s.Ranks)
	var forward, back []Pass
	for g := range groups {
		from, to := g*s.MicroBatches/groups, (g+1)*s.MicroBatches/groups
		for chunk := range s.Chunks {
			for i := from; i < to; i++ {
				forward = append(forward, Pass{Forward, i, chunk})
				back = append(back, Pass{backward, i, s.Chunks - 1 - chunk})
			}
		}
	}
	return tableOf(s, func(rank int) []Pass {
		return oneByOne(forward, back, max(ahead(s)-2*rank, 1))
	}).Passes
}

// ahead returns how many forward passes the first stage has ahead when chunks are interleaved.
func ahead(s Shape) int {
	if s.MicroBatches < s.Ranks {
		return s.MicroBatches*s.Chunks + 2*s.Ranks
	}
	groups := s.MicroBatches / s.Ranks
	largest := (s.MicroBatches + groups - 1) / groups
	return 2*(s.Ranks-1) + (s.Chunks-1)*largest + 1
}

// zeroBubble is ZB-H1. With several chunks it does the same to the interleaved schedule.
func zeroBubble(s Shape, times Times) Table {
	limit := s.Ranks
	if s.Chunks > 1 {
		limit = ahead(s)
	}
	return fastest(s, times, arrangements([]plan{{func(s Shape) [][]Pass { return interleave(s, BackwardInput) }, limit}}, times, 0))
}

// PlacementOf returns the placement of a named schedule, Loop for Auto.
func PlacementOf(name string) Placement {
	if g, ok := find(name); ok {
		return g.placement
	}
	return Loop
}
