package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Point is the handle of an extension point: a function of a trainer that patches may replace or
// wrap. It is immutable; the function is in the Slot of each trainer. F may also be a struct of
// functions that belong together.
type Point[F any] struct{ name, doc string }

// NewPoint returns the handle of an extension point. name is for example "native.schedule"; doc
// says what the function does.
func NewPoint[F any](name, doc string) Point[F] { return Point[F]{name, doc} }

// Name returns the name of the point.
func (p Point[F]) Name() string { return p.name }

// Points are the extension points of one trainer.
type Points struct {
	slots    []slot
	revision int
}

// Extensible is implemented by trainers that have extension points.
type Extensible interface{ Points() *Points }

// slot is a Slot of any type.
type slot interface {
	info() PointInfo
	undo(patch string) bool
}

// Layer is the change of an extension point by one patch.
type Layer struct {
	Patch    string `json:"patch"`
	Replaces bool   `json:"replaces"` // it does not call the layers below it
}

// PointInfo describes an extension point with its layers, the outermost last.
type PointInfo struct {
	Name   string  `json:"name"`
	Doc    string  `json:"doc"`
	Layers []Layer `json:"layers"`
}

// String shows the layers from the outermost to the original.
func (i PointInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", i.Name)
	for _, l := range slices.Backward(i.Layers) {
		verb := "wraps"
		if l.Replaces {
			verb = "replaces"
		}
		fmt.Fprintf(&b, "%s %s ", l.Patch, verb)
	}
	return b.String() + "the original"
}

// Slot holds the function of an extension point in one trainer.
type Slot[F any] struct {
	point             Point[F]
	original, current F
	layers            []layer[F]
}

type layer[F any] struct {
	Layer
	apply func(next F) F
}

// Declare adds an extension point with its original function. It panics if the name is already
// declared.
func Declare[F any](ps *Points, p Point[F], original F) *Slot[F] {
	if ps.find(p.name) != nil {
		panic(fmt.Sprintf("BUG: extension point %q is declared twice", p.name))
	}
	s := &Slot[F]{point: p, original: original, current: original}
	ps.slots = append(ps.slots, s)
	return s
}

// Func returns the present function. Callers should not keep it, since a patch may change it.
func (s *Slot[F]) Func() F { return s.current }

// Patched reports whether a patch has changed the function.
func (s *Slot[F]) Patched() bool { return len(s.layers) > 0 }

// Original returns the function without any patch.
func (s *Slot[F]) Original() F { return s.original }

func (s *Slot[F]) info() PointInfo {
	info := PointInfo{Name: s.point.name, Doc: s.point.doc}
	for _, l := range s.layers {
		info.Layers = append(info.Layers, l.Layer)
	}
	return info
}

// undo removes the layers of a patch and puts the others on the original again.
func (s *Slot[F]) undo(patch string) bool {
	before := len(s.layers)
	s.layers = slices.DeleteFunc(s.layers, func(l layer[F]) bool { return l.Patch == patch })
	if len(s.layers) == before {
		return false
	}
	s.current = s.original
	for _, l := range s.layers {
		s.current = l.apply(s.current)
	}
	return true
}

func (ps *Points) find(name string) slot {
	for _, s := range ps.slots {
		if s.info().Name == name {
			return s
		}
	}
	return nil
}

// List returns every extension point in the order of declaration.
func (ps *Points) List() []PointInfo {
	infos := make([]PointInfo, len(ps.slots))
	for i, s := range ps.slots {
		infos[i] = s.info()
	}
	return infos
}

// Undo removes the layers of a patch and returns from how many extension points. The order of the
// other layers stays.
func (ps *Points) Undo(patch string) int {
	n := 0
	for _, s := range ps.slots {
		if s.undo(patch) {
			n++
			ps.revision++
		}
	}
	return n
}

// Replace makes fn the function of an extension point. Layers of other patches below it are no
// longer called, which is logged.
func Replace[F any](c *Context, p Point[F], fn F) error {
	s, err := slotOf(c, p)
	if err != nil {
		return err
	}
	for _, l := range s.layers {
		c.warn(fmt.Sprintf("[Patch] %s replaces %s, so that %s has no effect on it any more", c.patch, p.name, l.Patch))
	}
	s.add(c, Layer{c.patch, true}, func(F) F { return fn })
	return nil
}

// Wrap puts a function around that of an extension point. wrap gets the present function as next
// and returns the new one.
func Wrap[F any](c *Context, p Point[F], wrap func(next F) F) error {
	s, err := slotOf(c, p)
	if err != nil {
		return err
	}
	s.add(c, Layer{Patch: c.patch}, wrap)
	return nil
}

func (s *Slot[F]) add(c *Context, l Layer, apply func(next F) F) {
	s.layers = append(s.layers, layer[F]{l, apply})
	s.current = apply(s.current)
	c.Points.revision++
}

// slotOf returns the slot of a point in the trainer of c.
func slotOf[F any](c *Context, p Point[F]) (*Slot[F], error) {
	if c.Points == nil {
		return nil, fmt.Errorf("extension point %q: backend %q has none in phase %s", p.name, c.Backend, c.Phase)
	}
	found := c.Points.find(p.name)
	if s, ok := found.(*Slot[F]); ok {
		return s, nil
	}
	if found != nil {
		return nil, fmt.Errorf("extension point %q has type %T, not %T", p.name, found, (*Slot[F])(nil))
	}
	var names []string
	for _, info := range c.Points.List() {
		names = append(names, info.Name)
	}
	hint := suggest.Hint(p.name, names)
	return nil, fmt.Errorf("no extension point %q: backend %q has %s%s", p.name, c.Backend, strings.Join(names, ", "), hint)
}
