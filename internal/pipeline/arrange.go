package pipeline

import "container/heap"

// rules say how arrange fills the time in which the next pass of a rank cannot begin.
type rules struct {
	limit   int  // chunks whose activations a rank holds
	window  int  // how many passes of the order it looks ahead
	patient bool // whether it computes only gradients of weights that end before the next pass can begin
}

// arrange makes a table of an order of forward and backward passes for each rank: it computes the
// gradients of weights where a rank would wait, or has no memory for another forward pass, and lets
// passes that are ready overtake others that are not. The order must be one that runs to its end
// within the limit if the gradients of weights come at once.
func arrange(name string, s Shape, order [][]Pass, times Times, r rules) Table {
	a := &arranger{Shape: s, rules: r, costs: times.costs(s), send: times.Send, ends: newArrivals(s), ranks: make([]arranged, s.Ranks)}
	for rank := range a.ranks {
		a.ranks[rank] = arranged{order: order[rank], taken: make([]bool, len(order[rank])), passes: make([]Pass, 0, len(order[rank])*3/2)}
		a.wake(0, rank)
	}
	for len(a.events) > 0 {
		e := heap.Pop(&a.events).(event)
		if e.at >= a.ranks[e.rank].free {
			a.step(e.rank, e.at)
		}
	}
	t := Table{Name: name, Shape: s, Passes: make([][]Pass, s.Ranks)}
	for rank := range a.ranks {
		t.Passes[rank] = a.ranks[rank].passes
	}
	return t
}

type arranger struct {
	Shape
	rules
	costs  [][]Cost
	send   float64
	ends   arrivals
	ranks  []arranged
	events events
}

// arranged is the state of a rank.
type arranged struct {
	order  []Pass
	taken  []bool
	head   int // of what is left of order
	passes []Pass
	weight []Pass // backward passes whose gradients of weights are left
	begun  int    // weight[begun:] are left
	free   float64
	held   int // chunks with activations
	open   int // chunks between their forward and backward pass
}

func (a *arranger) wake(at float64, rank int) { heap.Push(&a.events, event{at, rank}) }

// step begins a pass of a rank that is free at a time.
func (a *arranger) step(rank int, at float64) {
	r := &a.ranks[rank]
	for r.head < len(r.order) && r.taken[r.head] {
		r.head++
	}
	left := r.begun < len(r.weight)
	if r.head == len(r.order) {
		if left {
			a.weights(rank, at)
		}
		return
	}
	begin, known := a.ends.ready(a.Shape, rank, r.order[r.head], a.send)
	if known && begin <= at {
		if r.order[r.head].Kind == Forward && r.held >= a.limit && left {
			a.weights(rank, at)
			return
		}
		a.take(rank, r.head, at)
		return
	}
	if i := a.overtaking(rank, at); i >= 0 {
		a.take(rank, i, at)
		return
	}
	if left {
		p := r.weight[r.begun]
		if !a.patient || !known || at+a.costs[rank][p.Chunk].Weights <= begin {
			a.weights(rank, at)
			return
		}
	}
	if known {
		a.wake(begin, rank)
	}
}

// overtaking returns the position of a pass that is ready and may overtake those before it, -1 if
// there is none. A forward pass may if the rank's memory suffices for it all the way to its place.
func (a *arranger) overtaking(rank int, at float64) int {
	r := &a.ranks[rank]
	found, open, most := -1, r.open, 0
	for i, seen := r.head, 0; i < len(r.order) && seen < a.window; i++ {
		if r.taken[i] {
			continue
		}
		seen++
		p := r.order[i]
		ready, ok := a.ends.ready(a.Shape, rank, p, a.send)
		ok = ok && ready <= at
		if p.Kind == Forward {
			if found < 0 && ok && r.held < a.limit && most < a.limit {
				found = i
			}
			open++
			most = max(most, open)
		} else {
			if ok {
				return i
			}
			open--
		}
	}
	return found
}

// take runs a pass of the order.
func (a *arranger) take(rank, i int, at float64) {
	r := &a.ranks[rank]
	p := r.order[i]
	r.taken[i] = true
	if p.Kind == Forward {
		r.held++
		r.open++
	} else {
		r.open--
		r.weight = append(r.weight, Pass{BackwardWeights, p.MicroBatch, p.Chunk})
	}
	a.run(rank, p, at)
}

// weights computes the gradients of weights that have waited longest.
func (a *arranger) weights(rank int, at float64) {
	r := &a.ranks[rank]
	p := r.weight[r.begun]
	r.begun++
	r.held--
	a.run(rank, p, at)
}

func (a *arranger) run(rank int, p Pass, at float64) {
	r := &a.ranks[rank]
	end := at + a.costs[rank][p.Chunk].of(p.Kind)
	r.free = end
	r.passes = append(r.passes, p)
	a.ends.set(a.Shape, rank, p, end)
	a.wake(end, rank)
	if to, _, ok := a.feeds(rank, p); ok && to != rank {
		a.wake(end+a.send, to)
	}
}

// event is when a rank may begin a pass.
type event struct {
	at   float64
	rank int
}

// events is a heap, the earliest first.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].rank < e[j].rank
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}
