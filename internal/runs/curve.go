package runs

import (
	"slices"

	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/runtime/backend"
)

// Point is a step in the curve of a run.
type Point struct {
	Step            int      `json:"step"`
	Loss            *float64 `json:"loss"`
	ValidLoss       *float64 `json:"valid_loss,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second"`
}

// PointOf returns a step as a point of a curve.
func PointOf(s backend.Step) Point { return pointOf(rundir.RecordOf(s)) }

func pointOf(r rundir.Record) Point {
	p := Point{Step: int(r.Step), Loss: finite(r.Loss), TokensPerSecond: finite(r.TokensPerSecond)}
	if r.ValidLoss != nil {
		p.ValidLoss = finite(*r.ValidLoss)
	}
	return p
}

// maxPoints bounds a curve. A curve that reaches it drops every second point and from then on grows
// half as fast.
const maxPoints = 2048

// curve is the points of a run by step. The zero value is an empty curve.
type curve struct {
	points []Point
	first  int // step of the first point
	stride int // between the steps of points
}

// add appends a point, whose step is larger than those before.
func (c *curve) add(p Point) {
	if c.stride == 0 {
		c.first, c.stride = p.Step, 1
	}
	if (p.Step-c.first)%c.stride == 0 || p.ValidLoss != nil {
		c.points = append(c.points, p)
	}
	if len(c.points) >= maxPoints {
		c.thin()
	}
}

// thin keeps every second point and those with a validation loss or, if these are more than half of
// the points, every second point only.
func (c *curve) thin() {
	c.stride *= 2
	kept := slices.DeleteFunc(slices.Clone(c.points), func(p Point) bool {
		return (p.Step-c.first)%c.stride != 0 && p.ValidLoss == nil
	})
	if len(kept) > maxPoints*3/4 {
		kept = kept[:0]
		for i := 0; i < len(c.points); i += 2 {
			kept = append(kept, c.points[i])
		}
	}
	c.points = kept
}

// from returns the points from a step on.
func (c *curve) from(step int) []Point {
	i, _ := slices.BinarySearchFunc(c.points, step, func(p Point, step int) int { return p.Step - step })
	return append([]Point{}, c.points[i:]...)
}
