package layers

import "github.com/primus-fl/primus/internal/race"

// RouterRows says where the operands of a gradient lie: a number of rows of one length, with the
// distances of the rows of each.
type RouterRows struct{ Count, Cols, DX, Saved, Grad, Chosen int }

// end returns the index after the last element of rows with a distance.
func (r RouterRows) end(pitch int) int { return (r.Count-1)*pitch + r.Cols }

// SoftmaxGradient stores the gradient of a softmax s, row by row. With c the elements that chosen
// marks, or all of them if it is nil:
//
//	dx = s∘(scale·g − scale·Σ_c s·g)      for the elements of c
//	dx = −s·scale·Σ_c s·g                 for the others if all is true, else 0
//
// dx may be g. Elements of s that count for nothing may have any value.
func SoftmaxGradient(r RouterRows, dx, s, g []float32, chosen []byte, scale float32, all bool) {
	if !r.check(&dx, &s, &g, &chosen) {
		return
	}
	if routerVectors() {
		others := 0
		if all {
			others = 1
		}
		softmaxGradientAVX512(&dx[0], r.DX, &s[0], r.Saved, &g[0], r.Grad, firstChosen(chosen), r.Chosen, r.Count, r.Cols, scale, others)
		return
	}
	for i := range r.Count {
		dx, s, g, chosen := dx[i*r.DX:][:r.Cols], s[i*r.Saved:], g[i*r.Grad:], chosenRow(chosen, i*r.Chosen)
		product := float32(0)
		for j := range dx {
			if chosen == nil || chosen[j] != 0 {
				product += s[j] * g[j]
			}
		}
		product *= scale
		for j := range dx {
			switch {
			case chosen == nil || chosen[j] != 0:
				dx[j] = s[j] * (scale*g[j] - product)
			case all:
				dx[j] = -s[j] * product
			default:
				dx[j] = 0
			}
		}
	}
}

// SigmoidGradient stores the gradient of logistic functions s that are divided by their sum, row by
// row. With c the elements that chosen marks, or all of them if it is nil, and N = ε + Σ_c s, or 1
// without a sum if plain is true:
//
//	dx = s∘(1−s)∘(scale·g − scale·Σ_c s·g / N) / N      for the elements of c
//	dx = s∘(1−s)∘scale·g                                if plain is true
//	dx = 0                                              for the others
//
// dx may be g.
func SigmoidGradient(r RouterRows, dx, s, g []float32, chosen []byte, scale float32, plain bool) {
	if !r.check(&dx, &s, &g, &chosen) {
		return
	}
	if routerVectors() {
		sums := float32(1)
		if plain {
			sums = 0
		}
		sigmoidGradientAVX512(&dx[0], r.DX, &s[0], r.Saved, &g[0], r.Grad, firstChosen(chosen), r.Chosen, r.Count, r.Cols, scale, sums)
		return
	}
	for i := range r.Count {
		dx, s, g, chosen := dx[i*r.DX:][:r.Cols], s[i*r.Saved:], g[i*r.Grad:], chosenRow(chosen, i*r.Chosen)
		inverse, mean := float32(1), float32(0)
		if !plain {
			sum, product := float32(ScoreEpsilon), float32(0)
			for j := range dx {
				if chosen == nil || chosen[j] != 0 {
					sum += s[j]
					product += s[j] * g[j]
				}
			}
			inverse = 1 / sum
			mean = product * inverse
		}
		for j := range dx {
			if chosen == nil || chosen[j] != 0 {
				dx[j] = scale * inverse * (g[j] - mean) * (s[j] - s[j]*s[j])
			} else {
				dx[j] = 0
			}
		}
	}
}

// ScoreEpsilon keeps the sums of scores from being 0.
const ScoreEpsilon = 1e-20

// check shortens the operands to the rows and reports whether there are any elements.
func (r RouterRows) check(dx, s, g *[]float32, chosen *[]byte) bool {
	if r.Count <= 0 || r.Cols <= 0 {
		return false
	}
	*dx, *s, *g = (*dx)[:r.end(r.DX)], (*s)[:r.end(r.Saved)], (*g)[:r.end(r.Grad)]
	if *chosen != nil {
		*chosen = (*chosen)[:r.end(r.Chosen)]
	}
	for i := range r.Count {
		race.Read((*s)[i*r.Saved:][:r.Cols])
		race.Read((*g)[i*r.Grad:][:r.Cols])
		race.Write((*dx)[i*r.DX:][:r.Cols])
	}
	race.Read(*chosen)
	return true
}

// chosenRow returns what follows an element, nil of nil.
func chosenRow(chosen []byte, at int) []byte {
	if chosen == nil {
		return nil
	}
	return chosen[at:]
}

// firstChosen returns the first element, nil of nil.
func firstChosen(chosen []byte) *byte {
	if chosen == nil {
		return nil
	}
	return &chosen[0]
}
