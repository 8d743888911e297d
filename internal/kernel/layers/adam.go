package layers

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// AdamStep holds the numbers of one Adam step that do not depend on the element. Assembly reads
// them in this order.
type AdamStep struct {
	Beta1, Rest1 float32 // β₁ and 1−β₁
	Beta2, Rest2 float32 // β₂ and 1−β₂
	RootScale    float32 // 1/√c₂
	Epsilon      float32
	Rate         float32 // lr/c₁
	Decay        float32 // lr·wd of AdamW, else 0
	L2           float32 // wd of Adam with L2, else 0
}

// Adam performs one step, in place on p, m and v:
//
//	g' = g + L2·p
//	m  = Beta1·m + Rest1·g'      v = Beta2·v + Rest2·g'²
//	p  = p − Decay·p − Rate·m / (√v·RootScale + Epsilon)
//
// g is only read. With L2 = 0, g' is g even where p is not finite.
func Adam(p, m, v, g []float32, step *AdamStep) {
	n := len(p)
	m, v, g = m[:n], v[:n], g[:n]
	race.Read(g)
	race.Write(p)
	race.Write(m)
	race.Write(v)
	done := adamVector(p, m, v, g, step)
	adamGo(p[done:], m[done:], v[done:], g[done:], step)
}

// AdamLargest is Adam, and returns the largest magnitude of the new p, for which NaN does not
// count.
func AdamLargest(p, m, v, g []float32, step *AdamStep) (largest float32) {
	n := len(p)
	m, v, g = m[:n], v[:n], g[:n]
	race.Read(g)
	race.Write(p)
	race.Write(m)
	race.Write(v)
	done, largest := adamLargestVector(p, m, v, g, step)
	adamGo(p[done:], m[done:], v[done:], g[done:], step)
	for _, x := range p[done:] {
		if x = max(x, -x); x > largest {
			largest = x
		}
	}
	return largest
}

func adamGo(p, m, v, g []float32, step *AdamStep) {
	n := len(p)
	m, v, g = m[:n], v[:n], g[:n]
	s := *step
	for i := range p {
		pi, gi := p[i], g[i]
		if s.L2 != 0 {
			gi += s.L2 * pi
		}
		mi := s.Beta1*m[i] + s.Rest1*gi
		vi := s.Beta2*v[i] + s.Rest2*(gi*gi)
		m[i], v[i] = mi, vi
		root := float32(math.Sqrt(float64(vi)))
		p[i] = pi - s.Decay*pi - s.Rate*mi/(root*s.RootScale+s.Epsilon)
	}
}
