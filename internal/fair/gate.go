package fair

import (
	"context"
	"slices"
	"sync"
)

// Gate lets a number of pieces of work go on at once.
type Gate struct {
	mu      sync.Mutex
	free    int
	ledger  Ledger
	waiting []*waiter
}

type waiter struct {
	client string
	work   int
	passed chan struct{}
}

// NewGate returns a Gate for n pieces of work at once.
func NewGate(n int) *Gate { return &Gate{free: n} }

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
			g.leave(client)
		}
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.leave(client)
	}), nil
}

// leave gives back a place.
func (g *Gate) leave(client string) {
	g.free++
	g.ledger.Leave(client)
	g.pass()
}

// pass gives the free places to the clients with the least work, the first of several.
func (g *Gate) pass() {
	for g.free > 0 && len(g.waiting) > 0 {
		next := slices.MinFunc(g.waiting, func(a, b *waiter) int { return g.ledger.Used(a.client) - g.ledger.Used(b.client) })
		g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool { return w == next })
		g.free--
		g.ledger.Charge(next.client, next.work)
		close(next.passed)
	}
}

// Waiting returns how many pieces of work wait for a place.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
