package preflight

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// protocol is the first field of every message; a process of another version is refused.
const protocol = "primus preflight 1"

// maxMessage bounds a message of another rank.
const maxMessage = 8 << 20

// message is what ranks send each other, one JSON object per line.
type message struct {
	Protocol string  `json:"protocol"`
	World    int     `json:"world_size,omitempty"`
	Report   *Report `json:"report,omitempty"`
	Listen   string  `json:"listen,omitempty"` // port at which the sender can be reached
	Peers    []peer  `json:"peers,omitempty"`
	Reached  []reach `json:"reached,omitempty"`
	Verdict  []Check `json:"verdict,omitempty"`
}

// peer is a host of the job.
type peer struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Address string `json:"address"`
}

// reach is how one host reached another one.
type reach struct {
	From    int           `json:"from"`
	To      int           `json:"to"`
	Host    string        `json:"host"`
	Address string        `json:"address"`
	Took    time.Duration `json:"took"`
	Error   string        `json:"error,omitempty"`
}

// Gathered is what rank 0 has from all ranks, or what another rank has received from it.
type Gathered struct {
	Reports []*Report `json:"ranks"`
	Checks  []Check   `json:"cluster"`
}

// Gather brings the reports of all ranks to rank 0, which returns them with the checks of the
// cluster. The other ranks return those checks alone. It waits for the others no longer than
// timeout; ranks that are missing then are a failed check.
func Gather(ctx context.Context, own *Report, at Place, l Limits, timeout time.Duration) (*Gathered, error) {
	answering, port, err := answer(ctx)
	if err != nil {
		return nil, fmt.Errorf("preflight: listen for other ranks: %w", err)
	}
	defer answering.Close()
	if at.Rank == 0 {
		return collect(ctx, own, at, l, port, timeout)
	}
	return send(ctx, own, at, port, timeout)
}

// answer accepts connections of ranks that try whether this host can be reached, and closes them.
func answer(ctx context.Context) (net.Listener, string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", ":0")
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return listener, port, err
}

// link sends and receives messages.
type link struct {
	conn net.Conn
	in   *bufio.Reader
}

func newLink(c net.Conn, timeout time.Duration) *link {
	_ = c.SetDeadline(time.Now().Add(timeout))
	return &link{c, bufio.NewReader(io.LimitReader(c, maxMessage))}
}

func (k *link) send(m message) error {
	m.Protocol = protocol
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = k.conn.Write(append(text, '\n'))
	return err
}

func (k *link) receive() (message, error) {
	var m message
	line, err := k.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("unexpected message: %w", err)
	}
	if m.Protocol != protocol {
		return m, fmt.Errorf("the other side speaks %q, and this is %q: run the same version on all nodes", m.Protocol, protocol)
	}
	return m, nil
}

// send gives the report of a rank to rank 0.
func send(ctx context.Context, own *Report, at Place, port string, timeout time.Duration) (*Gathered, error) {
	address := net.JoinHostPort(at.Address, strconv.Itoa(at.Port))
	dialing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := dialUntil(dialing, address)
	if err != nil {
		return nil, fmt.Errorf("preflight: rank %d cannot reach rank 0 at %s: %w: check MASTER_ADDR, the firewall, and that rank 0 runs primus preflight", at.Rank, address, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	k := newLink(conn, timeout+patience) // rank 0 may wait for others that long
	own.Time = time.Now().UTC()
	lost := func(err error) error {
		return fmt.Errorf("preflight: rank %d lost rank 0 at %s: %w", at.Rank, address, err)
	}
	if err := k.send(message{World: at.World, Report: own, Listen: port}); err != nil {
		return nil, lost(err)
	}
	peers, err := k.receive()
	if err != nil {
		return nil, lost(err)
	}
	if err := k.send(message{Reached: reachAll(ctx, own, peers.Peers)}); err != nil {
		return nil, lost(err)
	}
	verdict, err := k.receive()
	if err != nil {
		return nil, lost(err)
	}
	return &Gathered{Checks: verdict.Verdict}, nil
}

// dialUntil tries to connect until rank 0 listens.
func dialUntil(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// reachTimeout is how long a connection to a peer may take, and patience how long the ranks wait
// for rank 0 after it has stopped waiting for others.
const (
	reachTimeout = 5 * time.Second
	patience     = 2 * time.Minute
)

// reachAtOnce bounds the connections that a rank tries at once.
const reachAtOnce = 16

// reachLimit is how long trying all peers may take.
func reachLimit(peers int) time.Duration { return reachTimeout * time.Duration(peers/reachAtOnce+2) }

// reachAll tries to connect to every other host.
func reachAll(ctx context.Context, own *Report, peers []peer) []reach {
	var mu sync.Mutex
	var all []reach
	var wait sync.WaitGroup
	slots := make(chan struct{}, reachAtOnce)
	for _, p := range peers {
		if p.Rank == own.Rank || p.Host == own.Host {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			x := tryReach(ctx, own.Rank, p)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, x)
		})
	}
	wait.Wait()
	return all
}

// tryReach connects to a host once.
func tryReach(ctx context.Context, from int, p peer) reach {
	started := time.Now()
	d := net.Dialer{Timeout: reachTimeout}
	conn, err := d.DialContext(ctx, "tcp", p.Address)
	x := reach{From: from, To: p.Rank, Host: p.Host, Address: p.Address, Took: time.Since(started)}
	if err != nil {
		x.Error = err.Error()
		return x
	}
	_ = conn.Close()
	return x
}

// joined is a rank that has reported.
type joined struct {
	report *Report
	link   *link // nil for rank 0 itself
	peer   peer
	skew   time.Duration
}

// collector is rank 0 while it gathers.
type collector struct {
	world int

	mu    sync.Mutex
	ranks map[int]joined
	full  chan struct{} // closed when all ranks are there
}

// collect does the work of rank 0.
func collect(outer context.Context, own *Report, at Place, l Limits, port string, timeout time.Duration) (*Gathered, error) {
	ctx, cancel := context.WithTimeout(outer, timeout)
	defer cancel()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", ":"+strconv.Itoa(at.Port))
	if err != nil {
		return nil, fmt.Errorf("preflight: rank 0 cannot collect: %w: another port is chosen with --port on all ranks", err)
	}
	c := &collector{world: at.World, ranks: map[int]joined{}, full: make(chan struct{})}
	c.join(joined{report: own, peer: peer{Rank: 0, Host: own.Host, Address: net.JoinHostPort(at.Address, port)}})
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	var accepting sync.WaitGroup
	accepting.Go(func() { c.accept(ctx, listener, timeout) })
	select {
	case <-c.full:
	case <-ctx.Done():
	}
	cancel()
	accepting.Wait()
	defer c.close()
	if err := outer.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	ranks := make([]joined, 0, len(c.ranks))
	for _, j := range c.ranks {
		ranks = append(ranks, j)
	}
	c.mu.Unlock()
	slices.SortFunc(ranks, func(a, b joined) int { return cmp.Compare(a.report.Rank, b.report.Rank) })
	g := &Gathered{}
	for _, j := range ranks {
		g.Reports = append(g.Reports, j.report)
	}
	reached := exchange(outer, own, ranks)
	g.Checks = append(missing(g.Reports, at.World), reachChecks(reached, len(hosts(ranks)))...)
	g.Checks = append(g.Checks, skewChecks(ranks, l)...)
	g.Checks = append(g.Checks, Compare(g.Reports, l)...)
	for _, j := range ranks {
		if j.link != nil {
			_ = j.link.conn.SetDeadline(time.Now().Add(reachTimeout))
			_ = j.link.send(message{Verdict: g.Checks})
		}
	}
	return g, nil
}

// join adds a rank and reports whether it is new.
func (c *collector) join(j joined) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.ranks[j.report.Rank]; ok {
		return false
	}
	c.ranks[j.report.Rank] = j
	if len(c.ranks) == c.world {
		close(c.full)
	}
	return true
}

func (c *collector) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.ranks {
		if j.link != nil {
			_ = j.link.conn.Close()
		}
	}
}

// accept takes the reports of other ranks until the listener is closed.
func (c *collector) accept(ctx context.Context, listener net.Listener, timeout time.Duration) {
	var readers sync.WaitGroup
	defer readers.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		readers.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			k := newLink(conn, timeout)
			m, err := k.receive()
			if !stop() || err != nil || m.Report == nil || m.World != c.world || m.Report.Rank < 1 || m.Report.Rank >= c.world {
				_ = conn.Close() // not a rank of this job
				return
			}
			host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
			if err != nil {
				_ = conn.Close()
				return
			}
			j := joined{report: m.Report, link: k, skew: time.Since(m.Report.Time), peer: peer{m.Report.Rank, m.Report.Host, net.JoinHostPort(host, m.Listen)}}
			if !c.join(j) {
				_ = conn.Close()
			}
		})
	}
}

// hosts returns the first rank of every host.
func hosts(ranks []joined) []peer {
	var list []peer
	seen := map[string]bool{}
	for _, j := range ranks {
		if !seen[j.report.Host] {
			seen[j.report.Host] = true
			list = append(list, j.peer)
		}
	}
	return list
}

// exchange tells the ranks about each other and returns what they could reach. Only the first rank
// of a host tries.
func exchange(ctx context.Context, own *Report, ranks []joined) []reach {
	peers := hosts(ranks)
	var mu sync.Mutex
	var all []reach
	var wait sync.WaitGroup
	for _, j := range ranks {
		trying := slices.ContainsFunc(peers, func(p peer) bool { return p.Rank == j.report.Rank })
		wait.Go(func() {
			var found []reach
			if j.link == nil {
				found = reachAll(ctx, own, peers)
			} else {
				told := message{}
				if trying {
					told.Peers = peers
				}
				_ = j.link.conn.SetDeadline(time.Now().Add(reachLimit(len(peers))))
				if err := j.link.send(told); err != nil {
					return
				}
				answer, err := j.link.receive()
				if err != nil {
					return
				}
				found = answer.Reached
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
		})
	}
	wait.Wait()
	return all
}
