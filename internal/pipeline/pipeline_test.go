package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// cell is a schedule of some size.
type cell struct {
	name                        string
	ranks, microBatches, chunks int
}

// cells returns all schedules up to 16 stages, 64 micro batches and 4 chunks, or a sample of them.
func cells(t *testing.T, sample int) []cell {
	t.Helper()
	var all []cell
	for _, g := range generators() {
		for ranks := 1; ranks <= 16; ranks++ {
			for m := max(1, g.micro*ranks); m <= 64; m++ {
				for chunks := 1; chunks <= 4; chunks++ {
					if g.chunks == 0 || g.chunks == chunks {
						all = append(all, cell{g.name, ranks, m, chunks})
					}
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:primustest.Cases(sample, len(all))]
}

func equal(c Cost) Times { return Times{Ranks: []Cost{c}} }

// costs are times that favour different schedules.
var costs = []Cost{{1, 1, 1}, {12, 24, 12}, {12, 14, 10}, {3, 1, 0}, {1, 0, 5}}

func generate(t *testing.T, c cell, times Times) Table {
	t.Helper()
	table, err := Generate(c.name, c.ranks, c.microBatches, c.chunks, times)
	require.NoError(t, err, c)
	return table
}

func simulated(t *testing.T, table Table, times Times) Simulation {
	t.Helper()
	r, err := Simulate(table, times)
	require.NoError(t, err)
	return r
}

// TestGeneratedTables proves tables and their messages, within the memory that is simulated and not
// within less.
func TestGeneratedTables(t *testing.T) {
	t.Parallel()
	for i, c := range cells(t, 160) {
		times := equal(costs[i%len(costs)])
		table := generate(t, c, times)
		r := simulated(t, table, times)
		program, err := Compile(table, r.Peak())
		require.NoError(t, err, c)
		require.NoError(t, program.Check(r.Peak()), c)
		require.ErrorContains(t, Check(table, r.Peak()-0.5/float64(c.chunks)), "micro batches held, want at most", c)
		checkSpans(t, table, r, times)
	}
}

// checkSpans recomputes the simulation from its spans: a pass begins when its rank and its inputs
// are there, and not later.
func checkSpans(t *testing.T, table Table, r Simulation, times Times) {
	t.Helper()
	type key struct {
		rank int
		p    Pass
	}
	ends := map[key]float64{}
	for rank, passes := range table.Passes {
		for i, p := range passes {
			if p.Kind == Backward {
				p.Kind = BackwardInput
			}
			ends[key{rank, p}] = r.Spans[rank][i].End
		}
	}
	for rank, passes := range table.Passes {
		free := 0.0
		for i, p := range passes {
			want := free
			if from, needed, ok := table.needs(rank, p); ok {
				arrival := ends[key{from, needed}]
				if from != rank {
					arrival += times.Send
				}
				want = max(want, arrival)
			}
			require.InDelta(t, want, r.Spans[rank][i].Start, 1e-9, "%s: stage %d, position %d", table.Name, rank, i)
			free = r.Spans[rank][i].End
		}
	}
}

// TestClosedForms compares with the formulas of the papers, for passes of equal length 1.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	for _, c := range cells(t, 160) {
		p, m, v := float64(c.ranks), float64(c.microBatches), float64(c.chunks)
		table := generate(t, c, equal(Cost{1, 1, 1}))
		r := simulated(t, table, equal(Cost{1, 1, 1}))
		bubble, peak := -1.0, -1.0 // idle time of a stage, and micro batches
		switch c.name {
		case "gpipe":
			bubble, peak = 3*(p-1), m
		case "1f1b":
			bubble, peak = 3*(p-1), min(p, m)
		case "interleaved":
			if c.microBatches%c.ranks == 0 {
				bubble = 3 * (p - 1) / v
				peak = min(m, (2*(p-1)+(v-1)*p+1)/v)
				if v == 1 {
					peak = min(p, m)
				}
			}
		case "zb1p":
			if m >= p && c.chunks == 1 {
				bubble, peak = p-1, p
			}
		case "zbv":
			if m >= 2*p-1 {
				bubble, peak = (p-1)/2, p
			}
		case "dualpipe-v":
			bubble, peak = (p-1)/2, p+0.5
		case "v-half": // at most half of 1F1B and one
			assert.LessOrEqual(t, r.Peak(), p/2+1, c)
		case "v-min": // at most a third of 1F1B and one and a third
			assert.LessOrEqual(t, r.Peak(), p/3+4.0/3+1e-9, c)
		}
		if bubble >= 0 {
			assert.InDelta(t, 3*m+bubble, r.StepTime, 1e-9, c)
			assert.InDelta(t, bubble/(3*m+bubble), r.Bubble, 1e-9, c)
			assert.InDelta(t, bubble/(3*m), r.BubbleOfWork(), 1e-9, c)
			assert.InDelta(t, peak, r.Peak(), 1e-9, c)
		}
	}
}

// TestUnevenTimes computes by hand what a slow stage costs.
func TestUnevenTimes(t *testing.T) {
	t.Parallel()
	times := Times{Ranks: []Cost{{1, 1, 1}, {1, 1, 1}, {2, 2, 2}}, Send: 0.25}
	r := simulated(t, generate(t, cell{"1f1b", 3, 10, 1}, times), times)
	// The last stage never waits after its first pass: 2 forward passes and messages come before it,
	// and as many of backward passes after it.
	assert.InDelta(t, 2*(1+0.25)+10*6+2*(2+0.25), r.StepTime, 1e-9)
	assert.InDelta(t, 60, r.Busy[2], 1e-9)
	assert.InDelta(t, 1-(30+30+60)/(3*r.StepTime), r.Bubble, 1e-9)
}

// TestMutatedTables refuses tables in which an entry is swapped with one that it must not pass,
// dropped, given twice or changed.
func TestMutatedTables(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range cells(t, 100) {
		table := generate(t, c, equal(Cost{1, 1, 1}))
		rank := r.IntN(table.Ranks)
		passes := table.Passes[rank]
		i, j := r.IntN(len(passes)), r.IntN(len(passes))
		for what, changed := range map[string][]Pass{
			"dropped":    slices.Delete(slices.Clone(passes), i, i+1),
			"duplicated": slices.Insert(slices.Clone(passes), j, passes[i]),
			"renumbered": replaced(passes, i, Pass{passes[i].Kind, passes[i].MicroBatch + table.MicroBatches, passes[i].Chunk}),
			"moved":      replaced(passes, i, Pass{passes[i].Kind, passes[i].MicroBatch, passes[i].Chunk + table.Chunks}),
			"no kind":    replaced(passes, i, Pass{0, passes[i].MicroBatch, passes[i].Chunk}),
			"negative":   replaced(passes, i, Pass{passes[i].Kind, -1, passes[i].Chunk}),
			"first":      first(passes, Backward, BackwardInput),
			"early W":    first(passes, BackwardWeights),
		} {
			if changed == nil {
				continue
			}
			mutant := table
			mutant.Passes = slices.Clone(table.Passes)
			mutant.Passes[rank] = changed
			err := Check(mutant, 0)
			require.Error(t, err, "%v: %s", c, what)
			assert.Regexp(t, fmt.Sprintf(`^pipeline: stage %d, position \d+: .*\bwant\b`, rank), err, "%v: %s", c, what)
		}
	}
}

func replaced(passes []Pass, i int, p Pass) []Pass {
	changed := slices.Clone(passes)
	changed[i] = p
	return changed
}

// first moves the last pass of some kinds to the front, nil if there is none.
func first(passes []Pass, kinds ...Kind) []Pass {
	for i := len(passes) - 1; i >= 0; i-- {
		if slices.Contains(kinds, passes[i].Kind) {
			return slices.Insert(slices.Delete(slices.Clone(passes), i, i+1), 0, passes[i])
		}
	}
	return nil
}

// TestSwapsAreJudged compares the verdict on random swaps with a second program, which looks for
// any order that keeps all dependencies.
func TestSwapsAreJudged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	verdicts := map[bool]int{}
	for _, c := range cells(t, 100) {
		table := generate(t, c, equal(Cost{1, 1, 1}))
		rank := r.IntN(table.Ranks)
		passes := slices.Clone(table.Passes[rank])
		i := r.IntN(len(passes))
		j := min(len(passes)-1, i+1+r.IntN(4))
		passes[i], passes[j] = passes[j], passes[i]
		table.Passes[rank] = passes
		err := Check(table, 0)
		require.Equal(t, acyclic(table), err == nil, "%v: %v", c, err)
		verdicts[err == nil]++
		if err == nil {
			program, err := Compile(table, 0)
			require.NoError(t, err)
			require.NoError(t, program.Check(0))
		}
	}
	assert.Positive(t, verdicts[true])
	assert.Positive(t, verdicts[false])
}

// acyclic reports whether the passes of a table can be put in one order, by removing passes that
// nothing precedes.
func acyclic(table Table) bool {
	type key struct {
		rank int
		p    Pass
	}
	norm := func(p Pass) Pass {
		if p.Kind == Backward {
			p.Kind = BackwardInput
		}
		return p
	}
	waits, after := map[key]int{}, map[key][]key{}
	link := func(a, b key) {
		waits[b]++
		after[a] = append(after[a], b)
	}
	var free []key
	total := 0
	for rank, passes := range table.Passes {
		for i, p := range passes {
			k := key{rank, norm(p)}
			total++
			if i > 0 {
				link(key{rank, norm(passes[i-1])}, k)
			}
			if from, need, ok := table.needs(rank, p); ok {
				link(key{from, need}, k)
			}
			if k.p.Kind == BackwardInput {
				link(key{rank, Pass{Forward, p.MicroBatch, p.Chunk}}, k)
			}
		}
	}
	for rank, passes := range table.Passes {
		for _, p := range passes {
			if k := (key{rank, norm(p)}); waits[k] == 0 {
				free = append(free, k)
			}
		}
	}
	done := 0
	for len(free) > 0 {
		k := free[len(free)-1]
		free = free[:len(free)-1]
		done++
		for _, next := range after[k] {
			if waits[next]--; waits[next] == 0 {
				free = append(free, next)
			}
		}
	}
	return done == total
}

// TestWaitingStagesAreNamed checks the error of two stages that wait for each other.
func TestWaitingStagesAreNamed(t *testing.T) {
	t.Parallel()
	table := Table{Shape: Shape{2, 2, 1, Loop}, Passes: [][]Pass{
		{{Forward, 0, 0}, {Backward, 0, 0}, {Forward, 1, 0}, {Backward, 1, 0}},
		{{Forward, 0, 0}, {Forward, 1, 0}, {Backward, 0, 0}, {Backward, 1, 0}},
	}}
	require.EqualError(t, Check(table, 0), "pipeline: the stages wait for each other: "+
		"stage 0, position 1: given BW of micro batch 0, chunk 0, want B of micro batch 0, chunk 0 on stage 1 before it; "+
		"stage 1, position 1: given F of micro batch 1, chunk 0, want F of micro batch 1, chunk 0 on stage 0 before it")
}

// TestMutatedPrograms refuses actions that are dropped, given twice or swapped with what they must
// not pass.
func TestMutatedPrograms(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	kinds := map[string]int{}
	for _, c := range cells(t, 100) {
		table := generate(t, c, equal(Cost{1, 1, 1}))
		program, err := Compile(table, 0)
		require.NoError(t, err)
		rank := r.IntN(table.Ranks)
		list := program.Actions[rank]
		i := r.IntN(len(list))
		change := func(what string, changed []Action, always bool) {
			mutant := Program{table, slices.Clone(program.Actions)}
			mutant.Actions[rank] = changed
			err := mutant.Check(0)
			if err == nil && !always {
				return
			}
			kinds[what]++
			require.Error(t, err, "%v: %s", c, what)
			assert.Regexp(t, `^pipeline: stage \d+, position \d+: .*\bwant\b`, err, "%v: %s", c, what)
		}
		change("dropped", slices.Delete(slices.Clone(list), i, i+1), true)
		change("duplicated", slices.Insert(slices.Clone(list), i, list[i]), true)
		wrong := slices.Clone(list)
		wrong[i].Op = 9
		change("no op", wrong, true)
		if list[i].Op != Run {
			peer := slices.Clone(list)
			peer[i].Peer++
			change("peer", peer, true)
		}
		for j := i + 1; j < len(list); j++ {
			if list[i].Op != Run && list[j].Op == list[i].Op && list[j].Peer == list[i].Peer {
				swapped := slices.Clone(list)
				swapped[i], swapped[j] = swapped[j], swapped[i]
				change("order of messages", swapped, true)
				break
			}
		}
		if i > 0 {
			swapped := slices.Clone(list)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			change("neighbours", swapped, false)
		}
	}
	for _, what := range []string{"dropped", "duplicated", "no op", "peer", "order of messages", "neighbours"} {
		assert.Positive(t, kinds[what], what)
	}
}

// TestRendezvous refuses two sends that wait for each other, though every message has its place and
// all are in order.
func TestRendezvous(t *testing.T) {
	t.Parallel()
	program, err := Compile(generate(t, cell{"1f1b", 2, 2, 1}, equal(Cost{1, 1, 1})), 0)
	require.NoError(t, err)
	run := func(k Kind, i int) Action { return Action{Run, Pass{k, i, 0}, 0} }
	program.Actions = [][]Action{
		{run(Forward, 0), {Send, Pass{Forward, 0, 0}, 1}, run(Forward, 1), {Send, Pass{Forward, 1, 0}, 1},
			{Receive, Pass{Backward, 0, 0}, 1}, run(Backward, 0), {Receive, Pass{Backward, 1, 0}, 1}, run(Backward, 1)},
		{{Receive, Pass{Forward, 0, 0}, 0}, run(Forward, 0), run(Backward, 0), {Send, Pass{Backward, 0, 0}, 0},
			{Receive, Pass{Forward, 1, 0}, 0}, run(Forward, 1), run(Backward, 1), {Send, Pass{Backward, 1, 0}, 0}},
	}
	require.EqualError(t, program.Check(0), "pipeline: stage 0, position 3: given send of F of micro batch 1, chunk 0 to stage 1, "+
		"where stage 1 is at its position 3, send of BW of micro batch 0, chunk 0 to stage 0: want an order in which sends that wait end")
	list := program.Actions[1]
	list[3], list[4] = list[4], list[3]
	assert.NoError(t, program.Check(0))
}

// TestSearch checks that the search is never slower than a named schedule within the memory.
func TestSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range primustest.Cases(8, 200) {
		ranks, m := 1+r.IntN(8), 1+r.IntN(24)
		times := Times{Ranks: make([]Cost, ranks), Send: r.Float64() / 2}
		for i := range times.Ranks {
			times.Ranks[i] = Cost{1 + r.Float64(), 1 + r.Float64(), 1 + r.Float64()}
		}
		limit := []float64{0, 1, 1.5, float64(ranks)/2 + 1, float64(ranks)}[r.IntN(5)]
		table, err := Search(ranks, m, 2, times, limit)
		require.NoError(t, err)
		program, err := Compile(table, limit)
		require.NoError(t, err)
		require.NoError(t, program.Check(limit))
		found := simulated(t, table, times)
		for _, g := range generators() {
			if m < g.micro*ranks {
				continue
			}
			named := simulated(t, generate(t, cell{g.name, ranks, m, Chunks(g.name, 2)}, times), times)
			if limit == 0 || named.Peak() <= limit {
				assert.LessOrEqual(t, found.StepTime, named.StepTime*(1+1e-9), "%d stages, %d micro batches, %v, limit %v: %s", ranks, m, times, limit, g.name)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	one := equal(Cost{1, 1, 1})
	for want, run := range map[string]func() error{
		"pipeline: given 0 stages, want a number from 1 to 1024": func() error { _, err := Generate("1f1b", 0, 4, 1, one); return err },
		"pipeline: given 0 micro batches, want":                  func() error { _, err := Generate("1f1b", 4, 0, 1, one); return err },
		"pipeline: given -1 chunks, want":                        func() error { _, err := Generate("interleaved", 4, 4, -1, one); return err },
		"pipeline: given 3 chunks for zbv, want 2":               func() error { _, err := Generate("zbv", 4, 4, 3, one); return err },
		"pipeline: given 2 chunks for 1f1b, want 1":              func() error { _, err := Generate("1f1b", 4, 4, 2, one); return err },
		"for dualpipe-v on 4 stages, want at least 8":            func() error { _, err := Generate("dualpipe-v", 4, 7, 2, one); return err },
		`pipeline: given the schedule "x", want one of gpipe`:    func() error { _, err := Generate("x", 4, 4, 1, one); return err },
		"want a product of at most 4194304":                      func() error { _, err := Generate("1f1b", 1024, 1<<20, 1, one); return err },
		"given the forward time NaN, want a number":              func() error { _, err := Generate("1f1b", 4, 4, 1, equal(Cost{nan(), 1, 1})); return err },
		"given the weight gradient time -1, want a number":       func() error { _, err := Generate("1f1b", 4, 4, 1, equal(Cost{1, 1, -1})); return err },
		"given the send time -1, want a number":                  func() error { _, err := Generate("1f1b", 4, 4, 1, Times{one.Ranks, -1, nil}); return err },
		"the passes take 0 in all, want a number above 0":        func() error { _, err := Generate("1f1b", 4, 4, 1, equal(Cost{})); return err },
		"given times of 2 stages, want 1 or 4":                   func() error { _, err := Search(4, 4, 1, Times{Ranks: make([]Cost, 2)}, 0); return err },
		"given a limit of 0.5 micro batches, want a number >= 1": func() error { _, err := Search(4, 4, 1, one, 0.5); return err },
		"given a limit of NaN micro batches, want a number >= 0": func() error { return Check(Table{Shape: Shape{1, 1, 1, Loop}}, nan()) },
		"given the passes of 0 stages, want 1":                   func() error { return Check(Table{Shape: Shape{1, 1, 1, Loop}}, 0) },
		`given the placement "", want loop or v`:                 func() error { return Check(Table{Shape: Shape{1, 1, 1, ""}}, 0) },
		"given times of 1 chunks for stage 0, want 2": func() error {
			_, err := Generate("zbv", 1, 4, 2, Times{Chunks: [][]Cost{{{1, 1, 1}}}})
			return err
		},
	} {
		assert.ErrorContains(t, run(), want)
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}
