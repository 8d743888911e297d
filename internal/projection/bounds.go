package projection

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/sysmem"
)

// less is a factor that keeps bounds below what they bound, whatever way sums are rounded.
const less = 1 - 1e-9

// bound is what no settings of a kind are below.
type bound struct {
	seconds float64 // of a step
	memory  float64 // of the stage that needs the most
}

// leastTime returns a time that no step of a plan is below, whatever schedule its pipeline has of
// those that compute both gradients at once, or of others. It also holds with more recomputation.
// Held is how many chunks a stage holds at most, 0 if that is not known.
//
// A stage cannot begin before a micro batch has passed the stages before it, and these need its
// gradient after the last pass of the stage, unless the gradients of weights are left for last.
// Until the first gradient comes back, a stage has only the forward passes of the chunks that it
// can hold. Beside such waits it has its own passes. The exchange of gradients and the optimizer
// are at least those of the stage for which they are shortest.
func (p *Plan) leastTime(r Rates, merged bool, held int) float64 {
	passes, slowest := p.passes(r)
	tail := math.Inf(1)
	for rank, first := range p.alike {
		if first == rank {
			one := p.step(r, passes[rank], rank, 0, func(Time, func() string) {})
			tail = min(tail, one-float64(p.Parallel.MicroBatches)*passes[rank].total())
		}
	}
	work := passes[slowest].total()
	simulated := p.Parallel.simulated()
	return less * (float64(p.Parallel.MicroBatches-simulated)*work + p.leastSimulated(r, passes, slowest, merged, held) + max(0, tail))
}

// leastSimulated is the part of leastTime for the micro batches that are simulated.
func (p *Plan) leastSimulated(r Rates, passes []pass, slowest int, merged bool, held int) float64 {
	n := float64(p.Parallel.simulated())
	least := n * passes[slowest].total()
	if p.Parallel.Pipeline == 1 {
		return least
	}
	times := p.times(r, passes)
	depths := p.Parallel.Pipeline * p.Parallel.Virtual
	cost := func(depth int) (rank int, c pipeline.Cost) {
		rank = p.Parallel.rankOf(depth)
		return rank, times.Chunks[rank][depth/p.Parallel.Pipeline]
	}
	before, forward, seen := 0.0, 0.0, make([]bool, p.Parallel.Pipeline)
	for depth := range depths {
		rank, c := cost(depth)
		if !seen[rank] {
			seen[rank] = true
			least = max(least, before+n*passes[rank].total())
		}
		forward += c.Forward
		before += c.Forward
		if merged {
			before += c.Backward + c.Weights
		}
	}
	if held == 0 {
		return least
	}
	back := forward // when the gradient reaches a chunk
	clear(seen)
	for depth := depths - 1; depth >= 0; depth-- {
		rank, c := cost(depth)
		if !seen[rank] {
			seen[rank] = true
			longest := 0.0
			for _, c := range times.Chunks[rank] {
				longest = max(longest, c.Forward)
			}
			least = max(least, back-float64(held)*longest+n*passes[rank].total())
		}
		back += c.Backward
	}
	return least
}

// leastMemory returns memory that no schedule of a plan is below: that of its state, and of one
// micro batch in one chunk if activations counts.
func (p *Plan) leastMemory(reserve float64, activations bool) float64 {
	most := 0.0
	for rank, first := range p.alike {
		if first < rank {
			continue
		}
		s := Stage{Rank: rank, Chunks: p.Stages[rank], InFlight: make([]int, len(p.Stages[rank]))}
		p.fill(&s, reserve, func(string, float64, explanation) {})
		total := s.Total - s.Recomputing
		if activations {
			kept := math.Inf(1)
			for _, c := range s.Chunks {
				bytes, _ := p.chunkActivations(c)
				kept = min(kept, bytes)
			}
			total = s.Total + kept
		}
		most = max(most, total)
	}
	return less * most
}

// exactMemory is the memory of the stage that needs the most.
func (p *Plan) exactMemory(reserve float64) float64 {
	most := 0.0
	for rank := range p.Stages {
		s := Stage{Rank: rank, Chunks: p.Stages[rank], InFlight: p.inFlight[rank]}
		p.fill(&s, reserve, func(string, float64, explanation) {})
		most = max(most, s.Total)
	}
	return most
}

// exactTime is the time of a step. The plan remembers the simulation that it takes.
func (p *Plan) exactTime(r Rates) (float64, error) {
	passes, slowest := p.passes(r)
	w, err := p.bubble(r, passes, slowest)
	if err != nil {
		return 0, err
	}
	p.simulation = &w
	return p.step(r, passes[slowest], slowest, w.seconds, func(Time, func() string) {}), nil
}

// tables remembers what follows from the tables of schedules.
type tables struct {
	mu    sync.Mutex
	known map[tableKey]func() ([][]int, error)
	most  map[tableKey]int
}

type tableKey struct {
	schedule                       Schedule
	stages, microBatches, perStage int
}

func newTables() *tables {
	return &tables{known: map[tableKey]func() ([][]int, error){}, most: map[tableKey]int{}}
}

// inFlight returns the micro batches in flight by stage and chunk.
func (t *tables) inFlight(p Parallel) ([][]int, error) {
	key := tableKey{p.Schedule, p.Pipeline, p.simulated(), p.Virtual}
	t.mu.Lock()
	find, ok := t.known[key]
	if !ok {
		find = sync.OnceValues(p.inFlight)
		t.known[key] = find
	}
	t.mu.Unlock()
	return find()
}

// held returns how many chunks a stage holds at most, 0 if that is not known.
func (t *tables) held(p Parallel) int {
	if p.Pipeline == 1 || p.Schedule == ScheduleZeroBubble && p.Virtual > 1 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := tableKey{schedule: p.Schedule, stages: p.Pipeline}
	most, ok := t.most[key]
	if !ok {
		most = pipeline.Limit(tableNames[p.Schedule], p.Pipeline)
		t.most[key] = most
	}
	return most
}

// node is some settings that are not ruled out yet: all of a cut, or one candidate.
type node struct {
	bound
	index int  // in the order of all settings
	leaf  bool // whether it is one candidate
	candidate
}

// nodes is a heap, the one with the least bound first.
type nodes struct {
	list   []node
	memory bool // compare memory, else time
}

func (n *nodes) Len() int      { return len(n.list) }
func (n *nodes) Swap(i, j int) { n.list[i], n.list[j] = n.list[j], n.list[i] }
func (n *nodes) Less(i, j int) bool {
	a, b := n.list[i], n.list[j]
	c := cmp.Compare(a.seconds, b.seconds)
	if n.memory {
		c = cmp.Compare(a.memory, b.memory)
	}
	return cmp.Or(c, cmp.Compare(a.index, b.index)) < 0
}
func (n *nodes) Push(x any) { n.list = append(n.list, x.(node)) }
func (n *nodes) Pop() any {
	last := n.list[len(n.list)-1]
	n.list = n.list[:len(n.list)-1]
	return last
}

// rated is a candidate with its exact figures.
type rated struct {
	node
	plan         *Plan
	time, memory float64
}

// batch is how many candidates are rated at once. It does not depend on the machine, so that a
// search rates the same ones everywhere.
const batch = 4

// search goes through the candidates of cuts, those with the least bounds first, until the bounds
// say that no other can be among the best.
func (sp *space) search(ctx context.Context, cuts []cut) (*Result, error) {
	res := &Result{Devices: sp.world}
	all := make([]node, len(cuts))
	index := 0
	for i, c := range cuts {
		all[i] = node{index: index, candidate: candidate{cut: c}}
		index += len(sp.schedules(c)) * len(sp.Recompute)
	}
	res.Settings = index
	if err := sp.each(ctx, len(all), func(i int) error {
		c := all[i].cut
		p, err := sp.read(candidate{c, sp.schedules(c)[0], sp.Recompute[0]})
		if err != nil {
			return err
		}
		all[i].seconds, all[i].memory = p.leastTime(sp.Rates, sp.merged, 0), p.leastMemory(sp.Reserve, false)
		return nil
	}); err != nil {
		return nil, err
	}
	if sp.Progress != nil {
		sp.Progress(len(all))
	}
	memory := &Reason{Reason: reasonMemory}
	best, err := sp.best(ctx, all, res, memory)
	if err != nil {
		return nil, err
	}
	for _, c := range best {
		found, err := sp.found(c)
		if err != nil {
			return nil, err
		}
		res.Best = append(res.Best, *found)
	}
	for _, name := range slices.Sorted(maps.Keys(sp.refused)) {
		res.Out = append(res.Out, *sp.refused[name])
	}
	if memory.Count > 0 {
		res.Out = append(res.Out, *memory)
	}
	if slower := res.Settings - memory.Count - len(best); slower > 0 && len(best) > 0 {
		res.Out = append(res.Out, Reason{Reason: reasonSlower, Count: slower, Example: fmt.Sprintf("a step of the last that is shown takes %.4g s", best[len(best)-1].time)})
	}
	if len(best) == 0 {
		res.Smallest, err = sp.smallest(ctx, all)
	}
	return res, err
}

// best returns the fastest candidates that fit, and counts those that do not.
func (sp *space) best(ctx context.Context, all []node, res *Result, memory *Reason) ([]rated, error) {
	open := &nodes{}
	outOfMemory := func(count int, bytes float64) {
		memory.Count += count
		if memory.Example == "" {
			memory.Example = fmt.Sprintf("one needs %s of %s", sysmem.Text(bytes), sysmem.Text(sp.limit))
		}
	}
	for _, n := range all {
		if n.memory > sp.limit {
			outOfMemory(len(sp.schedules(n.cut))*len(sp.Recompute), n.memory)
			continue
		}
		open.list = append(open.list, n)
	}
	heap.Init(open)
	var best []rated
	beaten := func(seconds float64) bool { return len(best) == sp.Top && seconds > best[len(best)-1].time }
	for open.Len() > 0 && !beaten(open.list[0].seconds) {
		var leaves []node
		for open.Len() > 0 && len(leaves) < batch && !beaten(open.list[0].seconds) {
			n := heap.Pop(open).(node)
			if n.leaf {
				leaves = append(leaves, n)
				continue
			}
			inside, err := sp.expand(n)
			if err != nil {
				return nil, err
			}
			for _, one := range inside {
				if one.memory > sp.limit {
					outOfMemory(1, one.memory)
					continue
				}
				heap.Push(open, one)
			}
		}
		rates, err := sp.rate(ctx, leaves, true)
		if err != nil {
			return nil, err
		}
		for _, r := range rates {
			if r.memory > sp.limit {
				outOfMemory(1, r.memory)
				continue
			}
			res.Projected++
			at, _ := slices.BinarySearchFunc(best, r, func(a, b rated) int {
				return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.index, b.index))
			})
			best = slices.Insert(best, at, r)
			best = best[:min(len(best), sp.Top)]
		}
		if sp.Progress != nil {
			sp.Progress(open.Len())
		}
	}
	return best, nil
}

// smallest returns the candidate that needs the least memory.
func (sp *space) smallest(ctx context.Context, all []node) (*Found, error) {
	open := &nodes{list: slices.Clone(all), memory: true}
	heap.Init(open)
	least := rated{memory: math.Inf(1)}
	for open.Len() > 0 && open.list[0].memory < least.memory {
		n := heap.Pop(open).(node)
		if !n.leaf {
			inside, err := sp.expand(n)
			if err != nil {
				return nil, err
			}
			for _, one := range inside {
				heap.Push(open, one)
			}
			continue
		}
		rates, err := sp.rate(ctx, []node{n}, false)
		if err != nil {
			return nil, err
		}
		if rates[0].memory < least.memory {
			least = rates[0]
		}
		if sp.Progress != nil {
			sp.Progress(open.Len())
		}
	}
	return sp.found(least)
}

// expand returns the candidates of a cut.
func (sp *space) expand(n node) ([]node, error) {
	var list []node
	index := n.index
	for _, recompute := range sp.Recompute {
		for _, schedule := range sp.schedules(n.cut) {
			one := node{index: index, leaf: true, candidate: candidate{n.cut, schedule, recompute}}
			index++
			p, err := sp.read(one.candidate)
			if err != nil {
				return nil, err
			}
			one.seconds = p.leastTime(sp.Rates, p.Parallel.Schedule.merged(), sp.tables.held(p.Parallel))
			one.memory = p.leastMemory(sp.Reserve, true)
			list = append(list, one)
		}
	}
	return list, nil
}

// rate computes the exact figures of candidates. The time is 0 for those that need too much memory,
// and where it is not asked for.
func (sp *space) rate(ctx context.Context, list []node, time bool) ([]rated, error) {
	rates := make([]rated, len(list))
	err := sp.each(ctx, len(list), func(i int) error {
		p, err := sp.read(list[i].candidate)
		if err != nil {
			return err
		}
		r := &rates[i]
		r.node, r.plan = list[i], p
		if p.inFlight, err = sp.tables.inFlight(p.Parallel); err != nil {
			return err
		}
		if r.memory = p.exactMemory(sp.Reserve); time && r.memory <= sp.limit {
			r.time, err = p.exactTime(sp.Rates)
		}
		return err
	})
	return rates, err
}

// each calls do for the numbers below n on all processors.
func (sp *space) each(ctx context.Context, n int, do func(i int) error) error {
	var next, failed atomic.Int64
	failed.Store(int64(n))
	errs := make([]error, n)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || int64(i) > failed.Load() || ctx.Err() != nil {
					return
				}
				if errs[i] = do(i); errs[i] != nil {
					failed.Store(int64(i))
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

var _ heap.Interface = (*nodes)(nil)
