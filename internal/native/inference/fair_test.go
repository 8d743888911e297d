package inference_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One client that asks for everything cannot keep another one waiting: of the tokens that are made
// while both want some, each client gets its part, although the first one has the slots and a long
// queue. The texts that lose their slots are those that they would be alone.
func TestClientsShareTheModel(t *testing.T) {
	e := startEngine(t, inference.Settings{Slots: 2, Capacity: 256})
	request := func(client string, i int) inference.Request {
		return inference.Request{Client: client, Prompt: []int32{65, int32(i)}, MaxTokens: 200, Sampling: inference.Sampling{Temperature: 1, Seed: uint64(i)}}
	}
	alone := generate(t, e, request("", 1))

	ctx, cancel := context.WithCancel(t.Context())
	var greedy atomic.Int64
	var all sync.WaitGroup
	begun := make(chan struct{}, 64)
	for i := range 16 {
		all.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				first := true
				got, err := e.Generate(ctx, request("greedy", i), func(inference.Event) error {
					greedy.Add(1)
					if first {
						first = false
						select {
						case begun <- struct{}{}:
						default:
						}
					}
					return nil
				})
				if err == nil && i == 1 {
					assert.Equal(t, alone, got)
				}
			}
		})
	}
	<-begun
	<-begun
	greedy.Store(0)
	for i := range 3 {
		generate(t, e, request("modest", i))
	}
	assert.Less(t, greedy.Load(), int64(3*200*2), "the modest client has one text at once, so that it gets one of two slots")
	cancel()
	all.Wait()
}

// A text that nobody reads gives its slot to others and goes on when it is read.
func TestTextsThatNobodyReads(t *testing.T) {
	e := startEngine(t, inference.Settings{Capacity: 1 << 12})
	r := inference.Request{Client: "slow", Prompt: []int32{65}, MaxTokens: 2000}
	want := generate(t, e, r)
	read, first := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var got inference.Result
	var all sync.WaitGroup
	all.Go(func() {
		var err error
		got, err = e.Generate(t.Context(), r, func(inference.Event) error {
			once.Do(func() { close(first) })
			<-read
			return nil
		})
		assert.NoError(t, err)
	})
	<-first
	for i := range 4 {
		generate(t, e, inference.Request{Client: "slow", Prompt: []int32{65, int32(i)}, MaxTokens: 500})
	}
	close(read)
	all.Wait()
	assert.Equal(t, want, got)
}

// When too many wait, the last of the client with the most of them gives way.
func TestTheLongestQueueGivesWay(t *testing.T) {
	e := startEngine(t, inference.Settings{Queue: 4, Capacity: 1 << 12})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan string, 16)
	var all sync.WaitGroup
	ask := func(client string) {
		all.Go(func() {
			_, err := e.Generate(ctx, inference.Request{Client: client, Prompt: []int32{65}, MaxTokens: 4000}, nil)
			if err != nil && ctx.Err() == nil {
				assert.ErrorIs(t, err, inference.ErrBusy)
				failed <- client
			}
		})
	}
	load := func(waiting int) {
		require.Eventually(t, func() bool { _, n := e.Load(); return n == waiting }, time.Minute, time.Millisecond)
	}
	for i := range 5 { // one of them generates
		ask("greedy")
		load(i)
	}
	ask("greedy")
	assert.Equal(t, "greedy", <-failed)
	for range 2 { // of four places, two for each
		ask("modest")
		assert.Equal(t, "greedy", <-failed)
	}
	ask("modest")
	assert.Equal(t, "modest", <-failed)
	cancel()
	all.Wait()
	assert.Empty(t, failed, fmt.Sprint(len(failed)))
}
