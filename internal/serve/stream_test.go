package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// follow opens the stream of events and hands them over one by one.
func (b *bench) follow(ctx context.Context, lastID string) <-chan serve.Event {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL()+"/v1/events", nil)
	require.NoError(b.t, err)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, resp.StatusCode)
	require.Equal(b.t, "text/event-stream", resp.Header.Get("Content-Type"))
	events := make(chan serve.Event)
	go func() {
		defer close(events)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e serve.Event
			if json.Unmarshal([]byte(data), &e) != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// next returns the next event of a type.
func next(t *testing.T, events <-chan serve.Event, kind string) serve.Event {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e, open := <-events:
			require.True(t, open, "the stream ended before %s", kind)
			if e.Type == kind {
				return e
			}
		case <-timeout:
			require.Fail(t, "no event in time", kind)
		}
	}
}

func TestEventsAreFollowed(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := b.follow(ctx, "")
	assert.Positive(t, next(t, events, "registered").Count)
	_, err := b.setLayer(opmanager.LayerService, "prefer: vendor")
	require.NoError(t, err)
	changed := next(t, events, "policy_changed")
	assert.Equal(t, b.manager.Generation(), changed.Generation)
	for range 3 {
		require.NoError(t, b.add())
	}
	quarantined := next(t, events, "quarantined")
	assert.Equal(t, "residual_add vendor.acme", quarantined.Op+" "+quarantined.Impl)
	assert.Contains(t, quarantined.Cause, "device lost")
	cancel()

	// Who comes back gets what it has missed, and nothing twice.
	again, stop := context.WithCancel(t.Context())
	defer stop()
	first := <-b.follow(again, changed.ID)
	assert.Equal(t, "failed", first.Type)
	other := <-b.follow(again, "of-another-process-7")
	assert.Equal(t, "registered", other.Type, "an id of another process says nothing")
}

func TestWhoFallsBehindIsToldHowMuch(t *testing.T) {
	b := newBench(t, nil)
	for g := range 3000 {
		b.hub.OnEvent(opmanager.PolicyChanged{Generation: uint64(g)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := b.follow(ctx, "")
	lost := <-events
	assert.Equal(t, "lost", lost.Type)
	assert.Equal(t, uint64(3001-1024), lost.Count)
	assert.Equal(t, uint64(3000-1024), (<-events).Generation)

	// Who comes back hears of what was lost since then, and behind that event of nothing any more.
	epoch, _, _ := strings.Cut(lost.ID, "-")
	again := <-b.follow(ctx, epoch+"-1001")
	assert.Equal(t, "lost 976", fmt.Sprint(again.Type, " ", again.Count))
	assert.Equal(t, uint64(3000-1024), (<-b.follow(ctx, again.ID)).Generation)
}

// Every event is either delivered or counted, also to a client that stops reading for a while.
func TestWhoPausesIsToldHowMuch(t *testing.T) {
	b := newBench(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.server.URL(), "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	var delivered, lost, last int
	readTo := func(number int) {
		for last < number && lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e serve.Event
			require.NoError(t, json.Unmarshal([]byte(data), &e))
			_, number, _ := strings.Cut(e.ID, "-")
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			if e.Type == "lost" {
				lost += int(e.Count)
			} else {
				delivered++
			}
			last = n
			require.Equal(t, last, delivered+lost, "a gap of which nothing is said")
		}
		require.Equal(t, number, last)
	}
	readTo(1)

	const large, small = 600, 3000 // the large ones fill what a connection holds
	for range large {
		b.hub.OnEvent(opmanager.Released{Op: strings.Repeat("x", 1<<15)})
	}
	for g := range small {
		b.hub.OnEvent(opmanager.PolicyChanged{Generation: uint64(g)})
	}
	readTo(1 + large + small)
	assert.Positive(t, lost)
}

// What happens in every call does not fill the stream.
func TestRepeatedEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := serve.NewHub()
		fail := func() {
			hub.OnEvent(opmanager.Failed{Op: "a", Impl: opmanager.ImplInfo{ID: "vendor.acme"}, Err: errors.New("x"), Declined: true})
		}
		for range 500 {
			fail()
		}
		time.Sleep(2 * time.Second)
		fail()
		events := serve.Kept(hub)
		require.Len(t, events, 2)
		assert.Equal(t, "declined 1", fmt.Sprint(events[0].Type, " ", events[0].Count))
		assert.Equal(t, uint64(500), events[1].Count)
	})
}

// A client that does not read costs a connection, and nobody waits for it.
func TestSlowReader(t *testing.T) {
	b := newBench(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.server.URL(), "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	long := strings.Repeat("x", 1<<16)
	for i := range 2000 { // a hub that waited for the client would not return
		b.hub.OnEvent(opmanager.Quarantined{Op: long, Cause: errors.New("x"), Failures: i})
	}
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/healthz", "").status)
}

func TestStreamsAreBounded(t *testing.T) {
	b := newBench(t, nil)
	serve.FillStreams(b.server)
	got := b.ask(http.MethodGet, "/v1/events", "")
	assert.Equal(t, http.StatusServiceUnavailable, got.status)
	assert.Equal(t, "10", got.header.Get("Retry-After"))
	got.problem(t)
}

func TestCloseEndsStreams(t *testing.T) {
	b := newBench(t, nil)
	events := b.follow(t.Context(), "")
	next(t, events, "registered")
	require.NoError(t, b.server.Close(t.Context()))
	for range events {
	}
	_, err := b.client.Get(b.server.URL() + "/healthz")
	assert.Error(t, err)
}
