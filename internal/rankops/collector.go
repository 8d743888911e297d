package rankops

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// Sink receives what processes report. Its methods are called by one goroutine at a time.
type Sink struct {
	Event func(rank int, e opmanager.Event)
	Calls func(rank int, calls []backend.RankCalls)
	Warn  func(text string)
}

// Collector receives the reports of processes on this machine. One process may have several op
// managers, each with a connection.
type Collector struct {
	sink     Sink
	dir      string
	listener net.Listener
	served   sync.WaitGroup

	mu     sync.Mutex
	policy string
	conns  map[net.Conn]struct{} // nil after Close

	told sync.Mutex // held while the sink is called
}

// Limits of what a process may send, and of how long it may leave its socket unread.
const (
	mostTimes = 1 << 20 // that events happened, in one report
	unread    = 5 * time.Second
)

// Listen makes a socket that only this user can reach, and serves it until Close. Processes put
// policy, a policy file, in force; "" leaves them theirs.
func Listen(policy string, sink Sink) (*Collector, error) {
	dir, err := os.MkdirTemp("", "primus-ops-") // the path of a socket is at most 107 bytes long
	if err != nil {
		return nil, fmt.Errorf("socket for the ops of ranks: %w", err)
	}
	c := &Collector{sink: sink, dir: dir, policy: policy, conns: map[net.Conn]struct{}{}}
	if c.listener, err = net.Listen("unix", c.Socket()); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("socket for the ops of ranks: %w", err)
	}
	c.served.Go(c.accept)
	return c, nil
}

// Socket returns the path of the socket.
func (c *Collector) Socket() string { return filepath.Join(c.dir, "socket") }

func (c *Collector) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.conns != nil {
			c.conns[conn] = struct{}{}
			c.served.Go(func() { c.serve(conn) })
		} else {
			conn.Close()
		}
		c.mu.Unlock()
	}
}

// serve reads the lines of a process until it ends.
func (c *Collector) serve(conn net.Conn) {
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
		conn.Close()
	}()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return
	}
	var h hello
	err := json.Unmarshal(lines.Bytes(), &h)
	rank := 0
	if err == nil && h.Rank != "" {
		rank, err = strconv.Atoi(h.Rank)
	}
	switch {
	case err != nil || rank < 0:
		c.warn("a process that reports its ops has given %q, want its rank and version; it is not counted", shorten(lines.Text()))
		return
	case h.Protocol != protocol:
		c.warn("rank %d has primus_fl %s, which reports in another form than primus %s reads: its ops are not counted; install the wheel of this version", rank, h.Version, buildinfo.Version())
		return
	}
	c.mu.Lock()
	send(conn, c.policy)
	c.mu.Unlock()
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			c.warn("rank %d: a report of its ops cannot be read: %v; further ones are not counted", rank, err)
			return
		}
		if err := c.take(rank, r); err != nil {
			c.warn("rank %d: a report of its ops: %v; further ones are not counted", rank, err)
			return
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		c.warn("rank %d: a report of its ops is longer than %d bytes; further ones are not counted", rank, maxLine)
	}
}

// take passes a report to the sink. Of one that cannot be taken whole the sink learns nothing.
func (c *Collector) take(rank int, r report) error {
	events, left := make([]opmanager.Event, len(r.Events)), uint64(mostTimes)
	for i, wire := range r.Events {
		var err error
		if events[i], err = wire.decode(); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if wire.Times > left {
			return fmt.Errorf("event %d: given %q of %q %d times after %d of others, want at most %d in one report", i, wire.Event, shorten(wire.Op), wire.Times, mostTimes-left, mostTimes)
		}
		left -= wire.Times
	}
	c.told.Lock()
	defer c.told.Unlock()
	if r.Refused != "" {
		c.sink.Warn(fmt.Sprintf("rank %d keeps its policy: %s", rank, r.Refused))
	}
	for i, e := range events {
		for range r.Events[i].Times {
			c.sink.Event(rank, e)
		}
	}
	if len(r.Calls) > 0 {
		c.sink.Calls(rank, r.Calls)
	}
	return nil
}

func (c *Collector) warn(format string, args ...any) {
	c.told.Lock()
	defer c.told.Unlock()
	c.sink.Warn(fmt.Sprintf(format, args...))
}

// SetPolicy sends a policy to all processes, those to come included.
func (c *Collector) SetPolicy(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = policy
	for conn := range c.conns {
		send(conn, policy)
	}
}

// send sends a policy. A process that does not read it is not waited for longer than unread; what
// it reports still counts.
func send(conn net.Conn, policy string) {
	line, err := json.Marshal(order{policy})
	if err != nil {
		return
	}
	conn.SetWriteDeadline(time.Now().Add(unread))
	conn.Write(append(line, '\n'))
}

// Close takes what processes have sent that have ended, ends the connections of the others and
// removes the socket. The sink is not called afterwards.
func (c *Collector) Close() {
	c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		conn.SetReadDeadline(time.Now().Add(interval)) // of a process that was killed, what is under way is read
	}
	c.conns = nil
	c.mu.Unlock()
	c.served.Wait()
	os.RemoveAll(c.dir)
}

// shorten returns the beginning of a text.
func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
