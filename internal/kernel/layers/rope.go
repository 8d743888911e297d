package layers

import "github.com/primus-fl/primus/internal/race"

// Turns says which vectors RotateHalves rotates: Columns pairs of each of Heads heads of each of
// Groups groups of each of Steps steps. The angles of a step lie Angles elements after those of the
// step before.
type Turns struct{ Steps, Groups, Heads, Columns, Angles int }

// Pitch holds the distances between steps, groups and heads, in elements.
type Pitch struct{ Step, Group, Head int }

// at returns the index of the first element of a head.
func (p Pitch) at(step, group, head int) int { return step*p.Step + group*p.Group + head*p.Head }

// end returns the index after the last element.
func (p Pitch) end(t Turns) int { return p.at(t.Steps-1, t.Groups-1, t.Heads-1) + t.Columns }

// RotateHalves rotates the pairs (x0[i], x1[i]) of heads by the angles of their steps. For each
// step s, group j and head k, with y0 and y1 from element s·y.Step + j·y.Group + k·y.Head on, x0
// and x1 likewise, the cosines and sines from s·t.Angles on, and i < t.Columns:
//
//	y0[i] = x0[i]·c0[i] − x1[i]·s0[i]
//	y1[i] = x1[i]·c1[i] + x0[i]·s1[i]
//
// y0 and y1 may be x0 and x1. For the transposed rotation, exchange y0 with y1, x0 with x1, and c0
// with c1.
func RotateHalves(t Turns, y0, y1 []float32, y Pitch, x0, x1 []float32, x Pitch, c0, c1, s0, s1 []float32) {
	if t.Steps == 0 || t.Groups == 0 || t.Heads == 0 || t.Columns == 0 {
		return
	}
	yEnd, xEnd, end := y.end(t), x.end(t), (t.Steps-1)*t.Angles+t.Columns
	y0, y1, x0, x1 = y0[:yEnd], y1[:yEnd], x0[:xEnd], x1[:xEnd]
	c0, c1, s0, s1 = c0[:end], c1[:end], s0[:end], s1[:end]
	if race.Enabled {
		raceRotateHalves(t, y0, y1, y, x0, x1, x, c0, c1, s0, s1)
	}
	done := rotateHalvesVector(t, y0, y1, y, x0, x1, x, c0, c1, s0, s1)
	if done == t.Columns {
		return
	}
	for s := range t.Steps {
		from, to := s*t.Angles+done, s*t.Angles+t.Columns
		for j := range t.Groups {
			for k := range t.Heads {
				y, x := y.at(s, j, k)+done, x.at(s, j, k)+done
				rotateHalvesGo(y0[y:], y1[y:], x0[x:], x1[x:], c0[from:to], c1[from:to], s0[from:to], s1[from:to])
			}
		}
	}
}

func raceRotateHalves(t Turns, y0, y1 []float32, y Pitch, x0, x1 []float32, x Pitch, c0, c1, s0, s1 []float32) {
	for s := range t.Steps {
		a := s * t.Angles
		race.Read(c0[a:][:t.Columns])
		race.Read(c1[a:][:t.Columns])
		race.Read(s0[a:][:t.Columns])
		race.Read(s1[a:][:t.Columns])
		for j := range t.Groups {
			for k := range t.Heads {
				y, x := y.at(s, j, k), x.at(s, j, k)
				race.Read(x0[x:][:t.Columns])
				race.Read(x1[x:][:t.Columns])
				race.Write(y0[y:][:t.Columns])
				race.Write(y1[y:][:t.Columns])
			}
		}
	}
}

// CopyHeads copies the heads that t says, of Columns elements each, from x to y, which must not
// overlap.
func CopyHeads(t Turns, y []float32, to Pitch, x []float32, from Pitch) {
	if t.Steps == 0 || t.Groups == 0 || t.Heads == 0 || t.Columns == 0 {
		return
	}
	y, x = y[:to.end(t)], x[:from.end(t)]
	vector := copyHeadsVector(t, y, to, x, from)
	if vector && !race.Enabled {
		return
	}
	for s := range t.Steps {
		for j := range t.Groups {
			for k := range t.Heads {
				y, x := y[to.at(s, j, k):][:t.Columns], x[from.at(s, j, k):][:t.Columns]
				if vector {
					race.Read(x)
					race.Write(y)
				} else {
					copy(y, x)
				}
			}
		}
	}
}

func rotateHalvesGo(y0, y1, x0, x1, c0, c1, s0, s1 []float32) {
	h := len(c0)
	y0, y1, x0, x1 = y0[:h], y1[:h], x0[:h], x1[:h]
	c1, s0, s1 = c1[:h], s0[:h], s1[:h]
	for i := range c0 {
		a, b := x0[i], x1[i]
		y0[i] = a*c0[i] - b*s0[i]
		y1[i] = b*c1[i] + a*s1[i]
	}
}

// RotatePairs turns the pairs (x[2i], x[2i+1]):
//
//	y[2i]   = x[2i]·c[2i]     + x[2i+1]·s[2i]
//	y[2i+1] = x[2i+1]·c[2i+1] + x[2i]·s[2i+1]
//
// All slices have one even length; the signs of a rotation are in s. y may be x.
func RotatePairs(y, x, c, s []float32) {
	n := len(y)
	x, c, s = x[:n], c[:n], s[:n]
	race.Read(x)
	race.Read(c)
	race.Read(s)
	race.Write(y)
	done := rotatePairsVector(y, x, c, s)
	rotatePairsGo(y[done:], x[done:], c[done:], s[done:])
}

func rotatePairsGo(y, x, c, s []float32) {
	for len(y) >= 2 && len(x) >= 2 && len(c) >= 2 && len(s) >= 2 {
		a, b := x[0], x[1]
		y[0] = a*c[0] + b*s[0]
		y[1] = b*c[1] + a*s[1]
		y, x, c, s = y[2:], x[2:], c[2:], s[2:]
	}
}
