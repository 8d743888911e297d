package pipeline

import (
	"cmp"
	"fmt"
	"slices"
)

// Op is what a rank does next.
type Op uint8

const (
	Run     Op = iota + 1 // the pass
	Send                  // the result of the pass to the peer
	Receive               // what the pass needs from the peer
)

func (o Op) String() string {
	switch o {
	case Run:
		return "run"
	case Send:
		return "send"
	case Receive:
		return "receive"
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Action is one step of a rank: a pass, or one end of a message.
type Action struct {
	Op   Op
	Pass Pass // of this rank: the one that is run, whose result is sent, or that needs what is received
	Peer int  // the rank at the other end of a message
}

func (a Action) describe() string {
	switch a.Op {
	case Send:
		return fmt.Sprintf("send of %s to stage %d", a.Pass.describe(), a.Peer)
	case Receive:
		return fmt.Sprintf("receive for %s from stage %d", a.Pass.describe(), a.Peer)
	}
	return a.Pass.describe()
}

// Program is a table with its messages: the actions of each rank in order. It runs to its end even
// where a send waits until the peer receives.
type Program struct {
	Table   Table
	Actions [][]Action
}

// message is what identifies a message: the direction, and the place in the model where it begins.
type message struct {
	backward          bool
	microBatch, depth int
}

// message returns the message that an action is an end of.
func (s Shape) message(rank int, a Action) message {
	m := message{a.Pass.Kind != Forward, a.Pass.MicroBatch, s.Depth(rank, a.Pass.Chunk)}
	switch {
	case a.Op == Send:
	case m.backward:
		m.depth++
	default:
		m.depth--
	}
	return m
}

// Compile adds the messages to a table that passes Check with the limit. Sends and receives take
// their places from one order of all events in time, so that no ranks can wait for each other.
func Compile(t Table, limit float64) (Program, error) {
	if err := Check(t, limit); err != nil {
		return Program{}, err
	}
	r := simulate(t, unit(t.Shape))
	type event struct {
		at     float64
		action Action
	}
	// A message counts from the end of the pass that makes it, before passes that begin then.
	events := make([][]event, t.Ranks)
	for rank, passes := range t.Passes {
		for i, p := range passes {
			events[rank] = append(events[rank], event{r.Spans[rank][i].Start, Action{Op: Run, Pass: p}})
			to, next, ok := t.feeds(rank, p)
			if !ok || to == rank {
				continue
			}
			end := r.Spans[rank][i].End
			events[rank] = append(events[rank], event{end, Action{Send, p, to}})
			events[to] = append(events[to], event{end, Action{Receive, next, rank}})
		}
	}
	whole := t.combined()
	program := Program{Table: t, Actions: make([][]Action, t.Ranks)}
	for rank, list := range events {
		slices.SortFunc(list, func(a, b event) int {
			if c := cmp.Compare(a.at, b.at); c != 0 {
				return c
			}
			if c := cmp.Compare(b.action.Op, a.action.Op); (a.action.Op == Run) != (b.action.Op == Run) {
				return c
			} else if a.action.Op == Run {
				return 0
			}
			x, y := t.message(rank, a.action), t.message(rank, b.action)
			return cmp.Or(cmp.Compare(x.depth, y.depth), cmp.Compare(x.microBatch, y.microBatch))
		})
		for _, e := range list {
			a := e.action
			if a.Op == Receive && a.Pass.Kind == BackwardInput && whole(rank, a.Pass) {
				a.Pass.Kind = Backward
			}
			program.Actions[rank] = append(program.Actions[rank], a)
		}
	}
	return program, nil
}

// combined returns a function that reports whether a rank computes the gradients of input and
// weights of a pass in one.
func (t Table) combined() func(rank int, p Pass) bool {
	whole := make([][]bool, t.Ranks)
	for rank, passes := range t.Passes {
		whole[rank] = make([]bool, t.Chunks*t.MicroBatches)
		for _, p := range passes {
			if p.Kind == Backward {
				whole[rank][p.Chunk*t.MicroBatches+p.MicroBatch] = true
			}
		}
	}
	return func(rank int, p Pass) bool { return whole[rank][p.Chunk*t.MicroBatches+p.MicroBatch] }
}

// Check returns an error unless the actions are those of the table and run to their end, also where
// a send waits until the peer receives. The error names rank and position, from 0.
func (p Program) Check(limit float64) error {
	t := p.Table
	if err := Check(t, limit); err != nil {
		return err
	}
	if len(p.Actions) != t.Ranks {
		return fmt.Errorf("pipeline: given the actions of %d stages, want %d", len(p.Actions), t.Ranks)
	}
	for rank := range p.Actions {
		if err := p.checkRank(rank); err != nil {
			return err
		}
	}
	if err := p.checkMessages(); err != nil {
		return err
	}
	return p.checkRendezvous()
}

// checkRank compares the actions of a rank with its passes and the messages that these need.
func (p Program) checkRank(rank int) error {
	t, next := p.Table, 0
	type end struct {
		op Op
		m  message
	}
	ran, messages := map[Pass]bool{}, map[end]bool{}
	for i, a := range p.Actions[rank] {
		where := fmt.Sprintf("pipeline: stage %d, position %d", rank, i)
		switch a.Op {
		case Run:
			if next == len(t.Passes[rank]) || a.Pass != t.Passes[rank][next] {
				want := "the end"
				if next < len(t.Passes[rank]) {
					want = t.Passes[rank][next].describe()
				}
				return fmt.Errorf("%s: given %s, want %s", where, a.Pass.describe(), want)
			}
			if from, _, ok := t.needs(rank, a.Pass); ok && from != rank && !messages[end{Receive, t.message(rank, Action{Receive, a.Pass, from})}] {
				return fmt.Errorf("%s: given %s, want its receive from stage %d before it", where, a.Pass.describe(), from)
			}
			ran[a.Pass] = true
			next++
		case Send, Receive:
			var peer int
			var ok bool
			if a.Op == Send {
				peer, _, ok = t.feeds(rank, a.Pass)
			} else {
				peer, _, ok = t.needs(rank, a.Pass)
			}
			switch id := (end{a.Op, t.message(rank, a)}); {
			case a.Pass.Chunk < 0 || a.Pass.Chunk >= t.Chunks || !ok || peer == rank || a.Op == Receive && a.Pass.Kind == BackwardWeights:
				return fmt.Errorf("%s: given %s, want no message", where, a.describe())
			case peer != a.Peer:
				return fmt.Errorf("%s: given %s, want stage %d", where, a.describe(), peer)
			case a.Op == Send && !ran[a.Pass]:
				return fmt.Errorf("%s: given %s, want the pass before it", where, a.describe())
			case messages[id]:
				return fmt.Errorf("%s: given %s, want it once", where, a.describe())
			default:
				messages[id] = true
			}
		default:
			return fmt.Errorf("%s: given the action %d, want run, send or receive", where, a.Op)
		}
	}
	if next < len(t.Passes[rank]) {
		return fmt.Errorf("pipeline: stage %d, position %d: the actions end here, want %s", rank, len(p.Actions[rank]), t.Passes[rank][next].describe())
	}
	for _, pass := range t.Passes[rank] {
		if to, _, ok := t.feeds(rank, pass); ok && to != rank && !messages[end{Send, t.message(rank, Action{Send, pass, to})}] {
			return fmt.Errorf("pipeline: stage %d, position %d: the actions end here, want %s", rank, len(p.Actions[rank]), Action{Send, pass, to}.describe())
		}
	}
	return nil
}

// checkMessages compares the order of the messages from one rank to another at both ends.
func (p Program) checkMessages() error {
	type pair struct{ from, to int }
	type sent struct {
		position int
		m        message
	}
	queues := map[pair][]sent{}
	for rank, list := range p.Actions {
		for i, a := range list {
			if a.Op == Send {
				k := pair{rank, a.Peer}
				queues[k] = append(queues[k], sent{i, p.Table.message(rank, a)})
			}
		}
	}
	for rank, list := range p.Actions {
		for i, a := range list {
			if a.Op != Receive {
				continue
			}
			k := pair{a.Peer, rank}
			if len(queues[k]) == 0 {
				return fmt.Errorf("pipeline: stage %d, position %d: given %s, want no more messages from there", rank, i, a.describe())
			}
			first := queues[k][0]
			if first.m != p.Table.message(rank, a) {
				s := p.Actions[a.Peer][first.position]
				return fmt.Errorf("pipeline: stage %d, position %d: given %s, want the message that comes first: %s at its position %d", rank, i, a.describe(), s.describe(), first.position)
			}
			queues[k] = queues[k][1:]
		}
	}
	for k, q := range queues {
		if len(q) > 0 {
			return fmt.Errorf("pipeline: stage %d, position %d: given %s, want a receive there", k.from, q[0].position, p.Actions[k.from][q[0].position].describe())
		}
	}
	return nil
}

// checkRendezvous runs the actions with sends that wait until the peer receives.
func (p Program) checkRendezvous() error {
	next := make([]int, p.Table.Ranks)
	current := func(rank int) (Action, bool) {
		if next[rank] == len(p.Actions[rank]) {
			return Action{}, false
		}
		return p.Actions[rank][next[rank]], true
	}
	queue := make([]int, p.Table.Ranks)
	for rank := range queue {
		queue[rank] = rank
	}
	for len(queue) > 0 {
		rank := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for {
			a, ok := current(rank)
			if !ok {
				break
			}
			if a.Op == Run {
				next[rank]++
				continue
			}
			b, ok := current(a.Peer)
			if !ok || b.Op == Run || b.Op == a.Op || b.Peer != rank || p.Table.message(rank, a) != p.Table.message(a.Peer, b) {
				break
			}
			next[rank]++
			next[a.Peer]++
			queue = append(queue, a.Peer)
		}
	}
	for rank := range next {
		if a, ok := current(rank); ok {
			other := "its end"
			if b, ok := current(a.Peer); ok {
				other = b.describe()
			}
			return fmt.Errorf("pipeline: stage %d, position %d: given %s, where stage %d is at its position %d, %s: want an order in which sends that wait end", rank, next[rank], a.describe(), a.Peer, next[a.Peer], other)
		}
	}
	return nil
}
