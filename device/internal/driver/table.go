package driver

import "fmt"

// Step is the distance between handles of one kind. Events and streams start at different numbers,
// so neither is ever taken for the other.
const Step = 2

// Table holds the objects of one kind by handle. A handle is never used twice. The caller locks it.
type Table[H ~uintptr, V any] struct {
	Live map[H]V
	Next H

	backend string // what errors begin with
	kind    string // what errors call an object
	maker   string // the method that returns handles
	first   H
}

// NewTable returns a table without objects, whose first handle is first. Errors name the backend,
// the kind of object and the method of the backend that makes one.
func NewTable[H ~uintptr, V any](backend, kind, maker string, first H) Table[H, V] {
	return Table[H, V]{Live: make(map[H]V), Next: first, backend: backend, kind: kind, maker: maker, first: first}
}

// Add makes a handle for v.
func (t *Table[H, V]) Add(v func(H) V) (H, error) {
	h := t.Next
	if h > ^H(0)-Step {
		return 0, fmt.Errorf("%s: create %s: all handles are used up; make a new backend", t.backend, t.kind)
	}
	t.Next += Step
	t.Live[h] = v(h)
	return h, nil
}

// Get returns the object of h. op is the verb for errors, such as "sync".
func (t *Table[H, V]) Get(op string, h H) (V, error) {
	if v, ok := t.Live[h]; ok {
		return v, nil
	}
	var none V
	if h < t.first || h >= t.Next || (h-t.first)%Step != 0 {
		return none, fmt.Errorf("%s: %s %s %d: %s of this backend did not return it", t.backend, op, t.kind, h, t.maker)
	}
	return none, fmt.Errorf("%s: %s %s %d: it is already freed", t.backend, op, t.kind, h)
}
