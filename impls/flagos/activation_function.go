package flagos

import (
	"math"

	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
)

// activation is a function f of a number a, times a number b, which is 1 unless the function is
// gated.
type activation struct {
	curve
	swish         simd.Swish
	limit, offset float32 // of clampedSwish
	gated         bool
}

// curve says which function an activation is.
type curve uint8

const (
	swish        curve = iota // a·σ(u)
	clampedSwish              // of min(a, limit), times min(max(b, −limit), limit) + offset
	logistic                  // σ(a)
	ramp                      // max(a, 0)
	squaredRamp               // max(a, 0)²
)

// activationScratch holds what a function needs besides its operands for one chunk of elements, in
// the first-level cache.
type activationScratch struct {
	ones, unused, first, second []float32
	chunk                       int
}

// scratch returns the scratch of a function for rows of h numbers. A function that needs none
// processes whole rows.
func (f *activation) scratch(e *opregistry.Exec, h int) activationScratch {
	if f.curve == swish && f.gated {
		return activationScratch{chunk: max(h, 1)}
	}
	const chunk = 512
	buf := e.Scratch(4 * chunk)
	r := activationScratch{ones: buf[:chunk], unused: buf[chunk:][:chunk], first: buf[2*chunk:][:chunk], second: buf[3*chunk:], chunk: chunk}
	for i := range r.ones[:min(h, chunk)] {
		r.ones[i] = 1
	}
	return r
}

func (r *activationScratch) release(e *opregistry.Exec) {
	if r.ones != nil {
		e.Release(r.ones)
	}
}

var infinity = float32(math.Inf(1))

// value stores f(a)·b of a chunk. y may be a.
func (f *activation) value(y, a, b []float32, buf *activationScratch) {
	switch f.curve {
	case swish:
		simd.Gate(y, a, b, f.swish)
	case clampedSwish:
		gate, factor := f.clamp(a, b, buf)
		simd.Gate(y, gate, factor, f.swish)
	case logistic:
		simd.Sigmoid(y, a)
		simd.Mul(y, y, b)
	case ramp:
		simd.Clamp(y, a, 0, infinity)
		simd.Mul(y, y, b)
	case squaredRamp:
		simd.Clamp(y, a, 0, infinity)
		simd.Mul(y, y, y)
		simd.Mul(y, y, b)
	}
}

// gradient stores da = dy·f′(a)·b and db = dy·f(a) of a chunk. da may be a or dy, and db may be b.
func (f *activation) gradient(da, db, dy, a, b []float32, buf *activationScratch) {
	n := len(a)
	if f.curve == swish {
		simd.GateGrad(da, db, dy, a, b, f.swish)
		return
	}
	value, slope := buf.first[:n], buf.second[:n]
	switch f.curve {
	case clampedSwish:
		gate, factor := f.clamp(a, b, buf)
		simd.GateGrad(gate, factor, dy, gate, factor, f.swish)
		simd.Keep(da, gate, a, -infinity, f.limit)
		simd.Keep(db, factor, b, -f.limit, f.limit)
		return
	case logistic:
		simd.Sigmoid(value, a)
		simd.MulSub(slope, value, value, 1)
		simd.Scale(-1, slope, slope)
	case ramp:
		simd.Clamp(value, a, 0, infinity)
		simd.Clamp(slope, a, 1, 1) // keeps a NaN
		simd.Keep(slope, slope, a, math.SmallestNonzeroFloat32, infinity)
	case squaredRamp:
		simd.Clamp(value, a, 0, infinity)
		simd.Scale(2, slope, value)
		simd.Mul(value, value, value)
	}
	simd.Mul(slope, slope, b)
	simd.Mul(db, dy, value)
	simd.Mul(da, dy, slope)
}

// clamp returns the clamped operands of clampedSwish.
func (f *activation) clamp(a, b []float32, buf *activationScratch) (gate, factor []float32) {
	n := len(a)
	gate, factor = buf.first[:n], buf.second[:n]
	simd.Clamp(gate, a, -infinity, f.limit)
	simd.Clamp(factor, b, -f.limit, f.limit)
	simd.MulSub(factor, buf.ones[:n], factor, -f.offset)
	return gate, factor
}
