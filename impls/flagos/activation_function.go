package flagos

import (
	"math"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/opregistry"
)

// function is a function f of a number a, multiplied by a number b, which is 1 unless the function
// is gated.
type function struct {
	curve
	swish         vector.Swish
	limit, offset float32 // of clampedSwish and bounded
	gated         bool
}

// curve says which function it is.
type curve uint8

const (
	swish        curve = iota // a·σ(u)
	clampedSwish              // of min(a, limit), times min(max(b, −limit), limit) + offset
	normal                    // a·Φ(a), the distribution function of the normal distribution
	bounded                   // limit·tanh(a/limit)
	logistic                  // σ(a)
	ramp                      // max(a, 0)
	squaredRamp               // max(a, 0)²
)

// scratch holds what a function needs besides its operands for one chunk of elements, in
// the first-level cache.
type scratch struct {
	ones, unused, first, second []float32
	chunk                       int
}

// scratch returns the scratch of a function for rows of h numbers. A function that needs none
// processes whole rows.
func (f *function) scratch(e *opregistry.Exec, h int) scratch {
	if f.curve == swish && f.gated {
		return scratch{chunk: max(h, 1)}
	}
	const chunk = 512
	buf := e.Scratch(4 * chunk)
	r := scratch{ones: buf[:chunk], unused: buf[chunk:][:chunk], first: buf[2*chunk:][:chunk], second: buf[3*chunk:], chunk: chunk}
	for i := range r.ones[:min(h, chunk)] {
		r.ones[i] = 1
	}
	return r
}

func (r *scratch) release(e *opregistry.Exec) {
	if r.ones != nil {
		e.Release(r.ones)
	}
}

var infinity = float32(math.Inf(1))

// value stores f(a)·b of a chunk. y may be a.
func (f *function) value(y, a, b []float32, buf *scratch) {
	switch f.curve {
	case swish:
		vector.Gate(y, a, b, f.swish)
	case clampedSwish:
		gate, factor := f.clamp(a, b, buf)
		vector.Gate(y, gate, factor, f.swish)
	case normal:
		n := len(a)
		vector.Normal(buf.first[:n], buf.second[:n], a)
		vector.Mul(y, a, buf.first[:n])
		vector.Mul(y, y, b)
	case bounded:
		vector.SoftCap(y, a, f.limit)
		vector.Mul(y, y, b)
	case logistic:
		vector.Sigmoid(y, a)
		vector.Mul(y, y, b)
	case ramp:
		vector.Clamp(y, a, 0, infinity)
		vector.Mul(y, y, b)
	case squaredRamp:
		vector.Clamp(y, a, 0, infinity)
		vector.Mul(y, y, y)
		vector.Mul(y, y, b)
	}
}

// gradient stores da = dy·f′(a)·b and db = dy·f(a) of a chunk. da may be a or dy, and db may be b.
func (f *function) gradient(da, db, dy, a, b []float32, buf *scratch) {
	n := len(a)
	if f.curve == swish {
		vector.GateGrad(da, db, dy, a, b, f.swish)
		return
	}
	value, slope := buf.first[:n], buf.second[:n]
	switch f.curve {
	case clampedSwish:
		gate, factor := f.clamp(a, b, buf)
		vector.GateGrad(gate, factor, dy, gate, factor, f.swish)
		vector.Keep(da, gate, a, -infinity, f.limit)
		vector.Keep(db, factor, b, -f.limit, f.limit)
		return
	case normal:
		vector.Normal(value, slope, a)
		vector.Mul(slope, slope, a)
		vector.Add(slope, slope, value)
		vector.Mul(value, value, a)
	case bounded:
		vector.SoftCap(value, a, f.limit)
		vector.Scale(1/f.limit, slope, value)
		vector.Mul(slope, slope, slope)
		vector.Scale(-1, slope, slope)
		vector.Add(slope, slope, buf.ones[:n])
	case logistic:
		vector.Sigmoid(value, a)
		vector.MulSub(slope, value, value, 1)
		vector.Scale(-1, slope, slope)
	case ramp:
		vector.Clamp(value, a, 0, infinity)
		vector.Clamp(slope, a, 1, 1) // keeps a NaN
		vector.Keep(slope, slope, a, math.SmallestNonzeroFloat32, infinity)
	case squaredRamp:
		vector.Clamp(value, a, 0, infinity)
		vector.Scale(2, slope, value)
		vector.Mul(value, value, value)
	}
	vector.Mul(slope, slope, b)
	vector.Mul(db, dy, value)
	vector.Mul(da, dy, slope)
}

// clamp returns the clamped operands of clampedSwish.
func (f *function) clamp(a, b []float32, buf *scratch) (gate, factor []float32) {
	n := len(a)
	gate, factor = buf.first[:n], buf.second[:n]
	vector.Clamp(gate, a, -infinity, f.limit)
	vector.Clamp(factor, b, -f.limit, f.limit)
	vector.MulSub(factor, buf.ones[:n], factor, -f.offset)
	return gate, factor
}
