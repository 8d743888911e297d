package loader

import (
	"runtime"
	"sync"
)

// Executor runs functions on its own fixed set of OS threads.
type Executor struct {
	work  chan *ticket
	quit  chan struct{}
	spare sync.Pool
	wg    sync.WaitGroup
	close sync.Once
}

type ticket struct {
	run   func()
	done  chan struct{}
	ended bool // run returned
	cause any  // the value of the panic when it did not
}

// StartExecutor starts an executor with this many threads, at least one. Close ends them.
func StartExecutor(threads int) *Executor {
	e := &Executor{work: make(chan *ticket), quit: make(chan struct{})}
	e.spare.New = func() any { return &ticket{done: make(chan struct{}, 1)} }
	for range max(threads, 1) {
		e.wg.Go(e.thread)
	}
	return e
}

// Do runs f on one of the executor's threads and returns when f has returned; it waits while all of
// them are busy. A panic of f is raised again in the caller. f must not call Do or Close of the
// same executor, nor runtime.Goexit. After Close f is not run and ErrClosed is returned.
//
// Do allocates nothing in a steady state; a closure made for the call does.
func (e *Executor) Do(f func()) error {
	t := e.spare.Get().(*ticket)
	t.run, t.ended, t.cause = f, false, nil
	select {
	case e.work <- t:
	case <-e.quit:
		return ErrClosed
	}
	<-t.done
	ended, cause := t.ended, t.cause
	t.run, t.cause = nil, nil
	e.spare.Put(t)
	if !ended {
		panic(cause)
	}
	return nil
}

// Close waits for running functions and ends the threads. It is idempotent.
func (e *Executor) Close() {
	e.close.Do(func() { close(e.quit) })
	e.wg.Wait()
}

// thread returns without unlocking its OS thread. That ends the OS thread, with everything that a
// library keeps for it.
func (e *Executor) thread() {
	runtime.LockOSThread()
	for {
		select {
		case t := <-e.work:
			t.execute()
		case <-e.quit:
			return
		}
	}
}

func (t *ticket) execute() {
	defer func() {
		if !t.ended {
			t.cause = recover()
		}
		t.done <- struct{}{}
	}()
	t.run()
	t.ended = true
}
