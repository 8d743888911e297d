package parallel

import (
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
)

// job is one call of Pool.Run. The next call reuses it: a helper does not touch it after it has
// decremented pending.
type job struct {
	task  opregistry.Task
	parts int64
	done  chan struct{} // one token from the last helper, when the caller is not last

	_       [cacheLine]byte
	next    atomic.Int64
	pending atomic.Int64 // the caller and the helpers to which the job was offered
	failure atomic.Pointer[Panic]
	_       [cacheLine]byte
}

func (j *job) begin(parts int, t opregistry.Task, helpers int) {
	j.task, j.parts = t, int64(parts)
	j.next.Store(0)
	j.pending.Store(int64(helpers) + 1)
}

// end waits until no helper works on the job, given the number of helpers that never took it, and
// returns the first panic.
func (j *job) end(untaken int) *Panic {
	if j.pending.Add(-int64(untaken)-1) != 0 {
		poll(func() bool { return len(j.done) > 0 }, callerSpin)
		<-j.done
	}
	j.task = nil
	return j.failure.Swap(nil)
}

// leave ends the use of the job by a helper, which must not touch it afterwards.
func (j *job) leave() {
	if j.pending.Add(-1) == 0 {
		j.done <- struct{}{}
	}
}

// work runs parts until none is left.
func (j *job) work() {
	part := int64(-1)
	returned := false
	defer func() {
		value := recover()
		switch {
		case returned:
			return
		case value == nil:
			value = errGoexit
		}
		j.next.Store(j.parts)
		j.failure.CompareAndSwap(nil, newPanic(value, int(part)))
	}()
	for {
		part = j.next.Add(1) - 1
		if part >= j.parts {
			break
		}
		j.task.Do(int(part))
	}
	returned = true
}
