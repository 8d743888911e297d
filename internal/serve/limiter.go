package serve

import (
	"sync"
	"time"
)

// limiter gives each client an allowance of requests that refills at a rate.
type limiter struct {
	rate, burst float64 // requests per second, and at once

	mu      sync.Mutex
	clients map[string]*allowance
}

// limits are the allowances for requests that read, and for those that do not.
type limits struct{ reads, writes *limiter }

type allowance struct {
	left float64
	at   time.Time
}

// maxClients bounds the memory for clients. When there are more, those with a full allowance are
// dropped, or any if there are none.
const maxClients = 1024

func newLimiter(rate, burst float64) *limiter {
	return &limiter{rate: rate, burst: burst, clients: map[string]*allowance{}}
}

// allow reports whether a client may make one more request, and if not, after what time it may.
func (l *limiter) allow(client string, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.clients[client]
	if !known {
		if len(l.clients) >= maxClients {
			l.forget(now)
		}
		a = &allowance{left: l.burst, at: now}
		l.clients[client] = a
	}
	a.left, a.at = l.refilled(a, now), now
	if a.left < 1 {
		return time.Duration((1 - a.left) / l.rate * float64(time.Second)), false
	}
	a.left--
	return 0, true
}

// spend reduces the allowance of a client further, after an expensive request; it may become
// negative.
func (l *limiter) spend(client string, amount float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, known := l.clients[client]; known {
		a.left -= amount
	}
}

func (l *limiter) refilled(a *allowance, now time.Time) float64 {
	return min(l.burst, a.left+l.rate*now.Sub(a.at).Seconds())
}

func (l *limiter) forget(now time.Time) {
	for client, a := range l.clients {
		if l.refilled(a, now) >= l.burst {
			delete(l.clients, client)
		}
	}
	for client := range l.clients {
		if len(l.clients) < maxClients {
			return
		}
		delete(l.clients, client)
	}
}
