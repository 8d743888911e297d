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
	taken  int // of those that the caller has and has not used
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

// unread returns how many events the caller has not used.
func (q *events) unread() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued) + q.taken
}

// all returns the events as they come. After many at once it calls
// caughtUp.
func (q *events) all(caughtUp func()) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			q.mu.Lock()
			for len(q.queued) == 0 && !q.closed {
				q.more.Wait()
			}
			batch := q.queued
			q.queued, q.taken = nil, len(batch)
			q.mu.Unlock()
			if batch == nil {
				return
			}
			for _, e := range batch {
				if !yield(e) {
					return
				}
			}
			q.mu.Lock()
			q.taken = 0
			q.mu.Unlock()
			if len(batch) >= maxUnread/2 {
				caughtUp()
			}
		}
	}
}
