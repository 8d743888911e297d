package world

import (
	"sync"
	"sync/atomic"
	"time"
)

// queue calls collectives one after the other, in the order in which they were asked for. All ranks
// ask in the same order, so that none waits for a collective that another one has yet to reach.
type queue struct {
	begin   sync.Once // starts serve: a run that is only planned asks for nothing
	waiting chan *ticket
	failure error        // the first one; then nothing is called any more
	spent   atomic.Int64 // nanoseconds in collectives that were not waited for at once
}

// ticket is a collective that was asked for.
type ticket struct {
	call  func() error
	aside bool // nobody waits for it at once
	done  chan struct{}
	err   error // once done is closed
}

// patience is how many collectives may wait before asking for another one waits, too.
const patience = 1024

func newQueue() *queue { return &queue{waiting: make(chan *ticket, patience)} }

func (q *queue) serve() {
	for t := range q.waiting {
		begin := time.Now()
		if t.err = q.failure; t.err == nil {
			t.err = t.call()
			q.failure = t.err
		}
		if t.aside {
			q.spent.Add(int64(time.Since(begin)))
		}
		close(t.done)
	}
}

// ask returns a ticket with which the caller can wait for the end of a collective.
func (q *queue) ask(aside bool, call func() error) *ticket {
	q.begin.Do(func() { go q.serve() })
	t := &ticket{call: call, aside: aside, done: make(chan struct{})}
	q.waiting <- t
	return t
}

// wait returns the error of the collective when it has ended.
func (t *ticket) wait() error {
	<-t.done
	return t.err
}
