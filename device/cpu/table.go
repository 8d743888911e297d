package cpu

import "fmt"

// handleStep is the distance between handles of one kind. Events and streams
// start at different numbers, so neither is ever taken for the other.
const handleStep = 2

// table holds the objects of one kind by handle. A handle is never used twice.
type table[H ~uintptr, V any] struct {
	kind  string // what errors call an object
	maker string // the method that returns handles
	first H
	next  H
	live  map[H]V
}

func newTable[H ~uintptr, V any](kind, maker string, first H) table[H, V] {
	return table[H, V]{kind: kind, maker: maker, first: first, next: first, live: make(map[H]V)}
}

// add makes a handle for v.
func (t *table[H, V]) add(v func(H) V) (H, error) {
	h := t.next
	if h > ^H(0)-handleStep {
		return 0, fmt.Errorf("cpu: create %s: all handles are used up; make a new backend", t.kind)
	}
	t.next += handleStep
	t.live[h] = v(h)
	return h, nil
}

// get returns the object of h. op is the verb for errors, such as "sync".
func (t *table[H, V]) get(op string, h H) (V, error) {
	if v, ok := t.live[h]; ok {
		return v, nil
	}
	var none V
	if h < t.first || h >= t.next || (h-t.first)%handleStep != 0 {
		return none, fmt.Errorf("cpu: %s %s %d: %s of this backend did not return it", op, t.kind, h, t.maker)
	}
	return none, fmt.Errorf("cpu: %s %s %d: it is already freed", op, t.kind, h)
}
