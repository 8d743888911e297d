package inference

import (
	"context"
	"slices"
)

// turn is how many tokens more than another client one may have had before it makes room for that
// one.
const turn = 16

// maxUnread is how many events a request may have that its caller has not taken. One with more
// waits for its caller, and its slot is for others.
const maxUnread = 256

// rework limits what making room costs: a text that computes its tokens anew keeps its slot until
// it has one more token for so many of these.
const rework = 8

// queue adds a request to those that wait. When too many do, the client with the most of them gives
// way: its last request ends with ErrBusy, or this one if the client is the same.
func (e *Engine) queue(s *sequence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	if e.settings.Queue > 0 && len(e.waiting) >= e.settings.Queue && !slices.Contains(e.active, nil) && !e.displace(s.Client) {
		return ErrBusy
	}
	e.ledger.Enter(s.Client)
	e.waiting = append(e.waiting, s)
	e.signal()
	return nil
}

// displace ends the last request of the client that has the most that wait, if it has at least two
// more than this one.
func (e *Engine) displace(client string) bool {
	waiting := map[string]int{}
	for _, s := range e.waiting {
		waiting[s.Client]++
	}
	for i, s := range slices.Backward(e.waiting) {
		if waiting[s.Client] == largestOf(waiting) && waiting[s.Client] >= waiting[client]+2 && s.computed == 0 {
			s.err = ErrBusy
			e.waiting = slices.Delete(e.waiting, i, i+1)
			e.leave(s)
			return true
		}
	}
	return false
}

func largestOf(counts map[string]int) (most int) {
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

// admit ends the sequences that nobody waits for, gives free slots to those that wait, and takes
// slots from clients that have had more than their share.
func (e *Engine) admit() (running, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for slot, s := range e.active {
		if s != nil && e.over(s) {
			e.active[slot] = nil
		}
	}
	e.waiting = slices.DeleteFunc(e.waiting, e.over)
	for slot := range e.active {
		if s := e.next(); s != nil && e.active[slot] == nil {
			e.place(s, slot)
		}
	}
	for range e.active {
		s := e.next()
		slot := -1
		if s != nil {
			slot = e.yields(s)
		}
		if slot < 0 {
			break
		}
		e.suspend(slot)
		e.place(s, slot)
	}
	running = slices.ContainsFunc(e.active, func(s *sequence) bool { return s != nil && !s.unread() })
	return running, e.closed
}

// over ends a sequence that has its finish, whose context has ended or whose engine is closed.
func (e *Engine) over(s *sequence) bool {
	switch {
	case s.finish != "" || s.err != nil:
	case e.closed:
		s.err = ErrClosed
	case s.ctx.Err() != nil:
		s.err = context.Cause(s.ctx)
	default:
		return false
	}
	e.leave(s)
	return true
}

func (e *Engine) leave(s *sequence) {
	e.ledger.Leave(s.Client)
	s.events.close()
}

func (e *Engine) charge(s *sequence, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ledger.Charge(s.Client, tokens)
}

// claim is what a client has had and will have soon: the client with the least is next.
func (e *Engine) claim(client string) int {
	claim := e.ledger.Used(client)
	for _, s := range e.active {
		if s != nil && s.Client == client {
			claim += turn
		}
	}
	return claim
}

// next returns the sequence that waits and gets the next slot, nil for none.
func (e *Engine) next() (next *sequence) {
	least := 0
	for _, s := range e.waiting {
		if claim := e.claim(s.Client); !s.unread() && (next == nil || claim < least) {
			next, least = s, claim
		}
	}
	return next
}

// place gives a slot to a sequence that waits.
func (e *Engine) place(s *sequence, slot int) {
	e.waiting = slices.DeleteFunc(e.waiting, func(w *sequence) bool { return w == s })
	e.active[slot] = s
	s.kept = 0
	e.decoder.Truncate(slot, 0)
}

// yields returns the slot that a sequence that waits may take from another one, -1 for none: one
// whose text nobody reads, or one of the client with the largest claim.
func (e *Engine) yields(to *sequence) int {
	slot, most := -1, e.claim(to.Client)+2*turn-1
	for i, s := range e.active {
		if s == nil || s.Slide || s == to {
			continue
		}
		if s.unread() {
			return i
		}
		claim := e.claim(s.Client)
		if s.Client != to.Client && claim > most && (!s.resumed || s.kept >= max(turn, len(s.tokens)/rework)) {
			slot, most = i, claim
		}
	}
	return slot
}

// suspend takes a slot from a sequence, which waits before all others of its client and then
// computes its tokens anew.
func (e *Engine) suspend(slot int) {
	s := e.active[slot]
	e.active[slot] = nil
	s.pending, s.resumed = s.tokens, true
	e.waiting = slices.Insert(e.waiting, 0, s)
}

// rows divides the rows of a step: each active sequence gets what it wants, up to an equal part of
// what those that want less have left over.
func (e *Engine) rows() []int {
	rows := make([]int, len(e.active))
	var wanting []int
	for slot, s := range e.active {
		if s != nil && !s.unread() {
			wanting = append(wanting, slot)
		}
	}
	slices.SortStableFunc(wanting, func(a, b int) int { return len(e.active[a].pending) - len(e.active[b].pending) })
	left := e.settings.Rows
	for i, slot := range wanting {
		rows[slot] = min(len(e.active[slot].pending), left/(len(wanting)-i))
		left -= rows[slot]
	}
	return rows
}
