package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/fair"
)

// Limits bound what clients make a Handler hold.
type Limits struct {
	Body     int // bytes of the body of a request
	Bodies   int // bytes of all bodies that are not tokens yet
	Requests int // of one client at once
	Tokens   int // of all texts of a request, with their prompts; 0 means eight texts of the largest length
}

// DefaultLimits returns the limits of a service that does not say otherwise.
func DefaultLimits() Limits { return Limits{Body: 4 << 20, Bodies: 32 << 20, Requests: 64} }

type clientKey struct{}

// WithClient returns a context for requests of a client, whose share of the work they use. Without
// it, requests from one address are those of one client.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf returns the client of a request. An IPv6 client has all addresses of a network of 64
// bits.
func clientOf(r *http.Request) string {
	if client, ok := r.Context().Value(clientKey{}).(string); ok {
		return client
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Unmap().Is4() {
		return host
	}
	return netip.PrefixFrom(address.WithZone(""), 64).Masked().String()
}

// admission counts what requests hold.
type admission struct {
	limits Limits
	work   *fair.Gate // for turning bodies into tokens and results into answers

	mu      sync.Mutex
	bytes   int
	clients map[string]*client
}

// client is what one client has here.
type client struct {
	bytes int
	held  map[*held]bool
}

// held is a request that was admitted.
type held struct {
	admission *admission
	client    string
	bytes     int
	displaced bool
	kept      bool   // it is past being displaced
	cut       func() // ends the reading of the body
}

// enter admits a request, or returns an error. cut is called when it has to give way.
func (a *admission) enter(name string, cut func()) (*held, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clients[name]
	if c == nil {
		c = &client{held: map[*held]bool{}}
		a.clients[name] = c
	}
	if len(c.held) >= a.limits.Requests {
		return nil, busy(fmt.Sprintf("this client has %d requests already, want at most that many at once (--client-requests); try again later", len(c.held)))
	}
	h := &held{admission: a, client: name, cut: cut}
	c.held[h] = true
	return h, nil
}

// leave ends a request.
func (h *held) leave() {
	a := h.admission
	h.free()
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clients[h.client]
	delete(c.held, h)
	if len(c.held) == 0 {
		delete(a.clients, h.client)
	}
}

// free returns the bytes of the body.
func (h *held) free() {
	a := h.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(h, -h.bytes)
}

func (a *admission) add(h *held, n int) {
	h.bytes += n
	a.bytes += n
	a.clients[h.client].bytes += n
}

// errDisplaced is the answer to a request that has to give way.
var errDisplaced = busy("too many bytes of requests are being read (--body-memory), of this client most; try again later")

// grow counts n more bytes. When there are too many, the client that holds the most gives way: its
// largest request is cut off, or this one if it is of the same client.
func (h *held) grow(n int) error {
	a := h.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	for !h.displaced && a.bytes+n > a.limits.Bodies {
		most, name := a.clients[h.client].bytes+n, h.client
		for other, c := range a.clients {
			if c.bytes > most {
				most, name = c.bytes, other
			}
		}
		if name == h.client {
			return errDisplaced
		}
		var largest *held
		for other := range a.clients[name].held {
			if !other.kept && (largest == nil || other.bytes > largest.bytes) {
				largest = other
			}
		}
		if largest == nil || largest.bytes == 0 {
			return errDisplaced
		}
		largest.displaced = true
		a.add(largest, -largest.bytes)
		largest.cut()
	}
	if h.displaced {
		return errDisplaced
	}
	a.add(h, n)
	return nil
}

// firstRead is how much of a body is read before more memory is asked for.
const firstRead = 4 << 10

// read returns the body of a request, which is counted as it comes. After an error, the rest of the
// body is cut off.
func (h *held) read(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	defer func() {
		if err != nil {
			h.cut()
			w.Header().Set("Connection", "close")
		}
	}()
	most := h.admission.limits.Body
	tooLarge := &apiError{status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body has more than %d bytes, want at most that many (--max-body)", most), Type: invalidRequest}
	if r.ContentLength > int64(most) {
		return nil, tooLarge
	}
	for {
		if len(body) == cap(body) {
			size := min(max(2*cap(body), firstRead), most+1)
			if err := h.grow(size - cap(body)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > most:
			return nil, tooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err := h.keep(); err != nil {
				return nil, err
			}
			return nil, &apiError{status: http.StatusRequestTimeout, Message: "the body came too slowly", Type: invalidRequest}
		case err != nil:
			return nil, invalid("", "the body cannot be read: "+err.Error())
		}
	}
}

// keep keeps a request whose body has been read from being displaced, unless it is too late for
// that.
func (h *held) keep() error {
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	if h.displaced {
		return errDisplaced
	}
	h.kept = true
	return nil
}

// past is a deadline that ends what waits for it.
var past = time.Unix(1, 0)
