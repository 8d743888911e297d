package serve

import (
	"net"
	"sync"
)

// limitListener limits the connections that are open at once; others wait in the queue of the
// system. Connections beyond the limit of an address are closed at once, so that one client cannot
// take all.
type limitListener struct {
	net.Listener
	each   int // limit of an address
	free   chan struct{}
	closed chan struct{}
	close  sync.Once

	mu   sync.Mutex
	held map[string]int // connections by address
}

func newLimitListener(l net.Listener, most, each int) *limitListener {
	return &limitListener{Listener: l, each: each, free: make(chan struct{}, most), closed: make(chan struct{}), held: map[string]int{}}
}

// Accept waits until one more connection may be open.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.free
			return nil, err
		}
		address := hostOf(conn.RemoteAddr().String())
		if l.hold(address) {
			return &limitedConn{Conn: conn, release: func() { l.release(address) }}, nil
		}
		_ = conn.Close() // the connection is refused either way
	}
}

func (l *limitListener) hold(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[address] >= l.each {
		return false
	}
	l.held[address]++
	return true
}

func (l *limitListener) release(address string) {
	l.mu.Lock()
	if l.held[address]--; l.held[address] == 0 {
		delete(l.held, address)
	}
	l.mu.Unlock()
	<-l.free
}

// Close stops listening; an Accept that waits returns net.ErrClosed.
func (l *limitListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

// Close lets another connection in.
func (c *limitedConn) Close() error {
	defer c.once.Do(c.release)
	return c.Conn.Close()
}
