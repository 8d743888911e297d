package acme

import "github.com/primus-fl/primus/opregistry"

// parallel calls f for each item, on the workers that the call brings. Items must
// not depend on each other.
func parallel(e *opregistry.Exec, items int, f func(item int)) {
	parts := min(items, e.Pool().Workers())
	if parts == 0 {
		return
	}
	e.Pool().Run(parts, blocks{items, parts, f})
}

// blocks cuts items into parts.
type blocks struct {
	items, parts int
	f            func(item int)
}

// Do implements opregistry.Task.
func (b blocks) Do(part int) {
	for i := part * b.items / b.parts; i < (part+1)*b.items/b.parts; i++ {
		b.f(i)
	}
}

var _ opregistry.Task = blocks{}
