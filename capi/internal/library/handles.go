package library

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// handles gives numbers to values. The number of one that was taken away is not used again, so a
// caller that keeps it gets an error and not another value. A look-up takes no lock.
type handles[T any] struct {
	kind string // of the values, in errors

	mu   sync.Mutex
	list atomic.Pointer[[]*T] // replaced, never changed; value i has the number i+1
}

func (h *handles[T]) all() []*T {
	if list := h.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add returns the number of a new value.
func (h *handles[T]) add(v *T) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := append(slices.Clone(h.all()), v)
	h.list.Store(&next)
	return uint64(len(next))
}

// get returns the value with a number.
func (h *handles[T]) get(number uint64) (*T, error) {
	list := h.all()
	if number == 0 || number > uint64(len(list)) {
		return nil, failure{CodeNotFound, fmt.Errorf("given %s %d, want one that the library has returned", h.kind, number)}
	}
	v := list[number-1]
	if v == nil {
		return nil, failure{CodeNotFound, fmt.Errorf("given %s %d, which was closed", h.kind, number)}
	}
	return v, nil
}

// take returns the value with a number, which then has none.
func (h *handles[T]) take(number uint64) (*T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, err := h.get(number)
	if err != nil {
		return nil, err
	}
	next := slices.Clone(h.all())
	next[number-1] = nil
	h.list.Store(&next)
	return v, nil
}
