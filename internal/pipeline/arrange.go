package pipeline

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
		e := a.events.pop()
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

func (a *arranger) wake(at float64, rank int) { a.events.push(event{at, rank}) }

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
		if p.Kind == Forward {
			if found < 0 && r.held < a.limit && most < a.limit && a.ready(rank, p, at) {
				found = i
			}
			open++
			most = max(most, open)
		} else {
			if a.ready(rank, p, at) {
				return i
			}
			open--
		}
	}
	return found
}

// ready reports whether what a pass needs has arrived.
func (a *arranger) ready(rank int, p Pass, at float64) bool {
	begin, known := a.ends.ready(a.Shape, rank, p, a.send)
	return known && begin <= at
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

func (e event) before(other event) bool {
	return e.at < other.at || e.at == other.at && e.rank < other.rank
}

// events is a heap, the earliest first. Package container/heap would allocate each event.
type events []event

func (e *events) push(one event) {
	list := append(*e, one)
	*e = list
	i := len(list) - 1
	for i > 0 && one.before(list[(i-1)/2]) {
		list[i] = list[(i-1)/2]
		i = (i - 1) / 2
	}
	list[i] = one
}

func (e *events) pop() event {
	list := *e
	first, last := list[0], list[len(list)-1]
	list = list[:len(list)-1]
	*e = list
	if len(list) == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(list) && list[child+1].before(list[child]) {
			child++
		}
		if child >= len(list) || !list[child].before(last) {
			break
		}
		list[i] = list[child]
		i = child
	}
	list[i] = last
	return first
}
