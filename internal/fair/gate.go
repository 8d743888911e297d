package fair

import (
	"context"
	"slices"
	"sync"
)

// Gate lets a number of pieces of work go on at once. Large pieces have one place together, so that
// small ones never wait for several of them.
type Gate struct {
	large int // the size of a large piece

	mu      sync.Mutex
	free    int
	busy    bool // with a large piece
	ledger  Ledger
	waiting []*waiter
}

type waiter struct {
	client string
	work   int
	passed chan struct{}
}

// NewGate returns a Gate for n small pieces of work at once, and beside them one that is large: at
// least of the size large.
func NewGate(n, large int) *Gate { return &Gate{free: n, large: large} }

// Acquire waits for a place for a piece of work of a client, whose size is charged when it begins.
// The caller calls done at its end. When ctx ends first, Acquire returns the cause.
func (g *Gate) Acquire(ctx context.Context, client string, work int) (done func(), err error) {
	w := &waiter{client, work, make(chan struct{})}
	g.mu.Lock()
	g.ledger.Enter(client)
	g.waiting = append(g.waiting, w)
	g.pass()
	g.mu.Unlock()
	select {
	case <-w.passed:
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		if i := slices.Index(g.waiting, w); i >= 0 {
			g.waiting = slices.Delete(g.waiting, i, i+1)
			g.ledger.Leave(client)
		} else {
			g.leave(w)
		}
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.leave(w)
	}), nil
}

// leave gives back a place.
func (g *Gate) leave(w *waiter) {
	if w.work >= g.large {
		g.busy = false
	} else {
		g.free++
	}
	g.ledger.Leave(w.client)
	g.pass()
}

// pass gives the free places to the clients with the least work, the first of several.
func (g *Gate) pass() {
	for {
		var next *waiter
		for _, w := range g.waiting {
			if g.place(w) && (next == nil || g.ledger.Used(w.client) < g.ledger.Used(next.client)) {
				next = w
			}
		}
		if next == nil {
			return
		}
		g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool { return w == next })
		if next.work >= g.large {
			g.busy = true
		} else {
			g.free--
		}
		g.ledger.Charge(next.client, next.work)
		close(next.passed)
	}
}

// place reports whether there is a place for a piece of work.
func (g *Gate) place(w *waiter) bool {
	if w.work >= g.large {
		return !g.busy
	}
	return g.free > 0
}

// Waiting returns how many pieces of work wait for a place.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
