package opmanager_test

import (
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stopwatch is a listener that wants durations. It asks its manager back, which must
// not wait for it.
type stopwatch struct {
	events
	m     *opmanager.Manager
	bound map[string]int // by op and impl
	heard map[string][]time.Duration
	mu    sync.Mutex
}

func (s *stopwatch) Durations(op string, impl opmanager.ImplInfo) func(time.Duration) {
	s.m.Stats()
	s.m.Reprobe()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := op + " " + impl.ID
	s.bound[key]++
	return func(took time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard[key] = append(s.heard[key], took)
	}
}

func TestDurationsAreSampled(t *testing.T) {
	tests := []struct {
		name  string
		edit  func(*oppolicy.Policy)
		calls int
		want  int
	}{
		{"every seventh", nil, 21, 3},
		{"fewer than seven", nil, 6, 0},
		{"with protection", func(p *oppolicy.Policy) { p.ProtectInPlace = true }, 14, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &stopwatch{bound: map[string]int{}, heard: map[string][]time.Duration{}}
			f := newManager(t, tt.edit, opmanager.Settings{Listeners: []opmanager.Listener{s}})
			s.m = f.Manager
			f.vendor.do = func(addArgs) error { time.Sleep(100 * time.Microsecond); return nil }
			call := opmanager.MustBind(f.Manager, addOne)
			for range tt.calls {
				require.NoError(t, call.Call(newArgs(t)))
			}
			heard := s.heard["add_one vendor.acme"]
			assert.Len(t, heard, tt.want)
			for _, took := range heard {
				assert.GreaterOrEqual(t, took, 100*time.Microsecond)
			}
			assert.LessOrEqual(t, s.bound["add_one vendor.acme"], 1, "asked once")
			assert.NotContains(t, s.bound, "add_one default.flagos", "it served nothing")
		})
	}
}
