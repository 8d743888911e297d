package inference

import (
	"iter"
	"sync"
)

// events passes the events of a request to the goroutine that waits for them. Adding one never
// waits.
type events struct {
	mu     *sync.Mutex
	more   *sync.Cond
	queued []Event
	closed bool
}

func newEvents() events {
	mu := &sync.Mutex{}
	return events{mu: mu, more: sync.NewCond(mu)}
}

func (q *events) add(e Event) {
	q.mu.Lock()
	q.queued = append(q.queued, e)
	q.mu.Unlock()
	q.more.Signal()
}

// close ends all after the events so far.
func (q *events) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Signal()
}

// all returns the events as they come.
func (q *events) all() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			q.mu.Lock()
			for len(q.queued) == 0 && !q.closed {
				q.more.Wait()
			}
			batch := q.queued
			q.queued = nil
			q.mu.Unlock()
			if batch == nil {
				return
			}
			for _, e := range batch {
				if !yield(e) {
					return
				}
			}
		}
	}
}
