package opmanager

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// maxVerifiedShare is the part of the time since the Manager was made that verification takes, at
// most, apart from the first call of each kind and modes that name a fraction.
const maxVerifiedShare = 0.005

// checks say which calls of an impl of an op are verified. They outlive tables and policies.
type checks struct {
	mu    sync.Mutex
	kinds atomic.Pointer[map[uint64]*schedule] // by signature; replaced, never changed
}

// maxKinds bounds the kinds of calls of an impl that are told apart. The others count as one.
const maxKinds = 1024

// checksOf returns the checks of an impl in a mode of verification.
func (c *core) checksOf(all *counters, v *oppolicy.Verify) *checks {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	mode := fmt.Sprint(v.Mode, v.Fraction)
	if all.checks[mode] == nil {
		if all.checks == nil {
			all.checks = map[string]*checks{}
		}
		all.checks[mode] = &checks{}
	}
	return all.checks[mode]
}

// of returns the schedule of the calls with a signature.
func (c *checks) of(signature uint64) *schedule {
	if kinds := c.kinds.Load(); kinds != nil {
		if s := (*kinds)[signature]; s != nil {
			return s
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := map[uint64]*schedule{}
	if now := c.kinds.Load(); now != nil {
		if len(*now) >= maxKinds {
			signature = 0
		}
		if s := (*now)[signature]; s != nil {
			return s
		}
		kinds = maps.Clone(*now)
	}
	s := &schedule{of: c, signature: signature}
	s.next.Store(1)
	kinds[signature] = s
	c.kinds.Store(&kinds)
	return s
}

// schedule counts the calls of one kind and says which one is verified next.
type schedule struct {
	of        *checks
	signature uint64
	calls     atomic.Uint64
	next      atomic.Uint64 // the number of the call
	suspect   atomic.Bool   // the last call that was verified was wrong
	passed    atomic.Uint64 // the number of the last call that was verified and right
}

// noMore is the number of a call that is never reached.
const noMore = 1 << 63

// count counts a call and reports whether it has to be verified.
func (s *schedule) count() bool { return s.calls.Add(1) >= s.next.Load() }

// claim reports whether the caller verifies the present call, which it has counted if count said
// so. Of several goroutines one verifies.
func (s *schedule) claim(v *oppolicy.Verify) (number uint64, claimed bool) {
	n, next := s.calls.Load(), s.next.Load()
	if n < next {
		n = s.calls.Add(1)
	}
	if n < next {
		return n, false
	}
	then := v.Next(n)
	if then == 0 {
		then = noMore
	}
	return n, s.next.CompareAndSwap(next, then)
}

// affordable reports whether verification has taken less than its share of the time.
func (c *core) affordable() bool {
	return float64(c.verifying.Load()) < maxVerifiedShare*float64(c.now())
}

// spent adds the time since start to that of verification.
func (c *core) spent(start time.Duration) { c.verifying.Add(int64(c.now() - start)) }
