package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/primus-fl/primus/internal/fair"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whoever always gives work to the client with the least keeps all who want work within the largest
// piece of each other, whatever the pieces are and whoever comes, leaves and returns.
func TestLedgerKeepsClientsClose(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		largest := 1 + random.IntN(100)
		var l fair.Ledger
		here := map[string]bool{}
		for range 500 {
			name := fmt.Sprint(random.IntN(8))
			switch {
			case random.IntN(20) > 0:
			case here[name]:
				l.Leave(name)
				delete(here, name)
			default:
				l.Enter(name)
				here[name] = true
			}
			least, most := "", ""
			for name := range here {
				if least == "" || l.Used(name) < l.Used(least) {
					least = name
				}
				if most == "" || l.Used(name) > l.Used(most) {
					most = name
				}
			}
			if least == "" {
				continue
			}
			require.LessOrEqual(t, l.Used(most)-l.Used(least), largest, "seed %d", seed)
			l.Charge(least, 1+random.IntN(largest))
		}
	}
}

// A client cannot lower its count by leaving, and nobody owes it for the time it was away.
func TestLedgerRemembers(t *testing.T) {
	var l fair.Ledger
	l.Enter("a")
	l.Enter("b")
	l.Charge("a", 100)
	l.Leave("a")
	l.Enter("a")
	assert.Equal(t, 100, l.Used("a"))
	l.Leave("a")
	l.Charge("b", 300)
	l.Enter("a")
	assert.Equal(t, 300, l.Used("a"))
	l.Leave("a")
	l.Leave("b")
	l.Enter("b")
	assert.Zero(t, l.Used("b"), "nobody was there")
}

func TestGate(t *testing.T) {
	g := fair.NewGate(1, 100)
	done, err := g.Acquire(t.Context(), "greedy", 10)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	_, err = g.Acquire(ctx, "greedy", 10)
	require.ErrorIs(t, err, gone)

	order := make(chan string)
	var all sync.WaitGroup
	waits := func(client string) {
		all.Go(func() {
			done, err := g.Acquire(t.Context(), client, 10)
			if assert.NoError(t, err) {
				order <- client
				done()
			}
		})
	}
	for range 3 {
		waits("greedy")
	}
	waits("modest")
	for g.Waiting() < 4 {
	}
	done()
	done() // again does nothing
	var got []string
	for range 4 {
		got = append(got, <-order)
	}
	assert.Contains(t, got[:2], "modest", "first at the latest when the greedy client has had one more")
	all.Wait()
}

// Small pieces go on beside a large one, however many large ones wait.
func TestGateKeepsPlacesForSmallWork(t *testing.T) {
	g := fair.NewGate(1, 100)
	large, err := g.Acquire(t.Context(), "a", 100)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		_, err := g.Acquire(ctx, "a", 1000)
		second <- err
	}()
	for g.Waiting() < 1 {
	}
	small, err := g.Acquire(t.Context(), "a", 99)
	require.NoError(t, err)
	assert.Equal(t, 1, g.Waiting(), "one large piece at a time")
	cancel()
	require.ErrorIs(t, <-second, context.Canceled)
	small()
	large()
	again, err := g.Acquire(t.Context(), "b", 100)
	require.NoError(t, err)
	again()
}
