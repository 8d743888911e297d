package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxClients is how many clients can have their own address.
const maxClients = 250 * 250

// crowd is many clients of a service.
type crowd struct {
	addr    string
	clients int
	every   time.Duration
	arrive  time.Duration // time within which all have asked once

	mu      sync.Mutex
	answers []float64
	events  int
	refused int
}

// pollers and followers are what crowds do.
func pollers(ctx context.Context, c *crowd) error   { return c.poll(ctx) }
func followers(ctx context.Context, c *crowd) error { return c.follow(ctx) }

// gather starts a crowd, which acts until leave is called; crowded then holds its error. A nil do
// means no crowd.
func gather(ctx context.Context, o serveOptions, addr string, do func(context.Context, *crowd) error) (crowded <-chan error, c *crowd, leave func()) {
	ctx, leave = context.WithCancel(ctx)
	done := make(chan error, 1)
	c = &crowd{addr: addr, clients: o.clients, every: o.every, arrive: o.settle}
	if do == nil {
		done <- nil
	} else {
		go func() { done <- do(ctx, c) }()
	}
	return done, c, leave
}

// seen returns what clients have measured: how long they waited for answers, how many events they
// received, and how many requests were refused.
func (c *crowd) seen() (answers []float64, events, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers, c.events, c.refused
}

// forget discards what clients have measured so far.
func (c *crowd) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers, c.events, c.refused = nil, 0, 0
}

// poll makes every client ask on a connection that stays open, at about the pace of the crowd,
// until ctx ends.
func (c *crowd) poll(ctx context.Context) error {
	ops, err := c.ops(ctx)
	if err != nil {
		return err
	}
	return c.each(ctx, func(ctx context.Context, conn net.Conn, r *rand.Rand) error {
		answers := bufio.NewReader(conn)
		arrived := time.Now().Add(c.arrive)
		pause := time.Duration(r.Float64() * float64(c.arrive))
		for {
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			path := "/v1/ops/" + ops[r.IntN(len(ops))] + "/explain"
			if i := r.IntN(4); i < 3 {
				path = []string{"/v1/ops", "/v1/runs", "/metrics"}[i]
			}
			began := time.Now()
			status, err := c.ask(conn, answers, path)
			if err != nil {
				return err
			}
			c.mu.Lock()
			c.answers = append(c.answers, time.Since(began).Seconds())
			if status != http.StatusOK {
				c.refused++
			}
			c.mu.Unlock()
			pause = time.Duration((0.5 + r.Float64()) * float64(c.every))
			if left := time.Until(arrived); left > 0 {
				pause = left + time.Duration(r.Float64()*float64(c.every)) // at its pace from the beginning
			}
		}
	})
}

// follow makes every client follow events until ctx ends.
func (c *crowd) follow(ctx context.Context) error {
	return c.each(ctx, func(_ context.Context, conn net.Conn, _ *rand.Rand) error {
		if _, err := fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: %s\r\n\r\n", c.addr); err != nil {
			return err
		}
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "HTTP/1.1 ") && !strings.HasPrefix(lines.Text(), "HTTP/1.1 200 ") {
				return fmt.Errorf("follow events: got %q", lines.Text())
			}
			if strings.HasPrefix(lines.Text(), "data: ") {
				c.mu.Lock()
				c.events++
				c.mu.Unlock()
			}
		}
		return lines.Err()
	})
}

// each runs client for all clients, each on its own connection, and returns the first error from
// before ctx ended.
func (c *crowd) each(ctx context.Context, client func(context.Context, net.Conn, *rand.Rand) error) error {
	faults := make([]error, c.clients)
	var wg sync.WaitGroup
	for i := range c.clients {
		wg.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/250), byte(1+i%250))}}
			conn, err := dialer.DialContext(ctx, "tcp", c.addr)
			if err == nil {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer stop()
				defer conn.Close()
				err = client(ctx, conn, rand.New(rand.NewPCG(1, uint64(i))))
			}
			if ctx.Err() == nil {
				faults[i] = err
			}
		})
	}
	wg.Wait()
	for i, err := range faults {
		if err != nil {
			return fmt.Errorf("client %d: %w", i+1, err) // others probably have the same error
		}
	}
	return nil
}

// ask reads an answer to its end and returns its status.
func (c *crowd) ask(conn net.Conn, answers *bufio.Reader, path string) (int, error) {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n", path, c.addr); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// ops returns the names of all ops.
func (c *crowd) ops(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+"/v1/ops", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all []struct{ Op string }
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, op := range all {
		names[i] = op.Op
	}
	return names, nil
}
