package watchdog

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen records what a watcher reports.
type seen struct {
	stalls  []backend.Stall
	resumed int
}

func (s *seen) Stalled(stall backend.Stall) { s.stalls = append(s.stalls, stall) }
func (s *seen) Resumed()                    { s.resumed++ }

// For random paces, floors and phases, a run is found to hang at the first look after its limit,
// once, goes on with its next mark, and is ended once, Wait after it was found.
func TestCheck(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var log bytes.Buffer
		var s seen
		aborts := 0
		wait := time.Duration(random.IntN(100)) * time.Second
		w := watcher{Settings: Settings{
			Floor: time.Duration(1+random.IntN(600)) * time.Second, Observer: &s, Wait: wait, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Impl: func(op string) string { return "vendor.of_" + op }, Abort: func(string) { aborts++ }, Recent: func() string { return "barrier 7" },
		}}
		at := backend.Where{
			Phase: backend.Phases()[random.IntN(len(backend.Phases()))], Step: random.IntN(100), Op: "gelu", Waits: "waiting in barrier 8", Marks: 5, Goroutine: -1,
			Usual: time.Duration(random.Int64N(int64(2 * time.Minute))),
		}
		allowed := max(w.Floor, 10*at.Usual)
		at.For = allowed
		w.check(at, true)
		require.Empty(t, s.stalls, "it may still go on")
		at.For++
		for range 3 {
			w.check(at, true)
		}
		require.Len(t, s.stalls, 1)
		require.Contains(t, s.stalls[0].Text, "phase "+at.Phase.String())
		require.Contains(t, s.stalls[0].Text, "in op gelu on vendor.of_gelu, waiting in barrier 8")
		require.Contains(t, log.String(), `collectives="barrier 7"`)
		found := at.For
		at.For = found + wait - 1
		w.check(at, true)
		if random.IntN(2) == 0 && wait > 0 {
			require.Zero(t, aborts)
			at.Marks, at.For = 6, 0
			w.check(at, true)
			require.Equal(t, 1, s.resumed)
			continue
		}
		at.For = found + wait
		for range 3 {
			w.check(at, true)
		}
		require.Equal(t, 1, aborts)
		require.Zero(t, s.resumed)
	}
}

// A run is seen where it is, with the stack of its goroutine, and is not watched before and after.
func TestLook(t *testing.T) {
	t.Parallel()
	p := backend.NewProgress()
	_, running := p.Look()
	assert.False(t, running)
	release, reached, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.Begin()
		defer p.End()
		for step := range 3 {
			p.Enter(backend.PhaseData, step)
			p.Enter(backend.PhaseForward, step)
		}
		p.Op().Set("gelu")
		close(reached)
		<-release
	}()
	<-reached
	at, running := p.Look()
	assert.True(t, running)
	assert.Equal(t, backend.PhaseForward, at.Phase)
	assert.Equal(t, 2, at.Step)
	assert.Equal(t, "gelu", at.Op)
	assert.Positive(t, at.Usual)
	assert.True(t, strings.Contains(Stack(at.Goroutine), "TestLook.func"), Stack(at.Goroutine))
	close(release)
	<-done
	_, running = p.Look()
	assert.False(t, running)
}
