package fleettest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy forwards connections until it is blocked.
type Proxy struct {
	// Address is the HOST:PORT that it listens on.
	Address string

	listener net.Listener
	target   string
	done     sync.WaitGroup

	mu      sync.Mutex
	passing chan struct{} // closed while the proxy forwards
	closed  bool
	conns   map[net.Conn]struct{}
}

// NewProxy returns a Proxy for a HOST:PORT until the end of the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{Address: l.Addr().String(), listener: l, target: target, passing: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(p.passing)
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Block stops forwarding in both directions without closing connections, like a firewall that drops
// packets.
func (p *Proxy) Block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passing = make(chan struct{})
}

// Unblock forwards again, beginning with the bytes that have waited.
func (p *Proxy) Unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
}

func (p *Proxy) close() {
	p.Unblock()
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.keep(client) {
			continue
		}
		p.done.Go(func() { p.serve(client) })
	}
}

// keep adds a connection to those that close at the end of the test, and reports whether that end
// is still to come.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) serve(client net.Conn) {
	p.wait()
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client) })
	both.Go(func() { p.pass(client, server) })
	both.Wait()
}

// pass copies from one side to the other until one of them ends, and then closes both.
func (p *Proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns when the proxy forwards.
func (p *Proxy) wait() {
	p.mu.Lock()
	passing := p.passing
	p.mu.Unlock()
	<-passing
}
