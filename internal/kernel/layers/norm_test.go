package layers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachWidth runs f for rows of every length up to two vectors of 16 and more, and of
// some long ones.
func eachWidth(f func(cols int)) {
	for cols := 1; cols <= 67; cols++ {
		f(cols)
	}
	f(300)
	f(1030)
}

// gaps are the rows of a matrix in memory that must not change anywhere else.
type gaps struct {
	Rows
	cols, count int
	before      []float32
}

func newGaps(rng *rand.Rand, count, cols int) gaps {
	lead, pitch := rng.IntN(kerneltest.Surround), cols+rng.IntN(5)
	data := kerneltest.Fill(rng, 1, lead+count*pitch+kerneltest.Surround)[0]
	return gaps{Rows: Rows{data[lead:], pitch}, cols: cols, count: count, before: append([]float32(nil), data[lead:]...)}
}

func (g *gaps) requireKept(t *testing.T) {
	t.Helper()
	for i, v := range g.Data {
		if i/g.Pitch >= g.count || i%g.Pitch >= g.cols {
			require.Equal(t, g.before[i], v, "element %d of rows of %d, %d apart", i, g.cols, g.Pitch)
		}
	}
}

func TestNormGrad(t *testing.T) {
	const rows = 3
	kerneltest.EachFeature(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		eachWidth(func(cols int) {
			for kind := range 16 {
				dz, x, add, dx := newGaps(rng, rows, cols), newGaps(rng, rows, cols), newGaps(rng, rows, cols), newGaps(rng, rows, cols)
				g := newGaps(rng, 4, cols)
				stats := kerneltest.Fill(rng, 3, rows)
				a := Gradient{DX: dx.Rows, DZ: dz.Rows, X: x.Rows, G: g.row(0, cols), RSigma: stats[2], DGamma: g.row(1, cols)}
				if kind&1 != 0 {
					a.Mu = stats[0]
				}
				if kind&2 != 0 {
					a.DBeta = g.row(2, cols)
				}
				if kind&4 != 0 {
					a.Add = add.Rows
				}
				switch {
				case kind&8 == 0:
				case kind&4 != 0:
					dx, a.DX = add, add.Rows
				default:
					dx, a.DX = dz, dz.Rows
				}
				want, dgamma, dbeta := gradient64(&a)
				NormGrad(&a)
				for r := range rows {
					require.InDeltaSlice(t, want[r], a.DX.row(r, cols), 1e-4, "dx of %d columns, kind %d", cols, kind)
				}
				require.InDeltaSlice(t, dgamma, a.DGamma, 1e-4, "dgamma of %d columns, kind %d", cols, kind)
				if a.DBeta != nil {
					require.InDeltaSlice(t, dbeta, a.DBeta, 1e-4, "dbeta of %d columns, kind %d", cols, kind)
				}
				for i, m := range []*gaps{&dz, &x, &add, &dx, &g} {
					m.requireKept(t)
					if i < 3 && &m.Data[0] != &a.DX.Data[0] {
						require.Equal(t, m.before, m.Data)
					}
				}
			}
		})
	})
}

// gradient64 is the formula of NormGrad in float64.
func gradient64(a *Gradient) (dx [][]float64, dgamma, dbeta []float64) {
	cols := len(a.G)
	dgamma, dbeta = make([]float64, cols), make([]float64, cols)
	for i := range a.G {
		dgamma[i] = float64(a.DGamma[i])
		if a.DBeta != nil {
			dbeta[i] = float64(a.DBeta[i])
		}
	}
	for r, rsigma := range a.RSigma {
		dz, x, row := a.DZ.row(r, cols), a.X.row(r, cols), make([]float64, cols)
		xhat := make([]float64, cols)
		mean, slope := 0., 0.
		for i, g := range a.G {
			xhat[i] = float64(x[i])
			if a.Mu != nil {
				xhat[i] -= float64(a.Mu[r])
				mean += float64(dz[i]) * float64(g) / float64(cols)
			}
			xhat[i] *= float64(rsigma)
			slope += float64(dz[i]) * float64(g) * xhat[i] / float64(cols)
		}
		for i, g := range a.G {
			row[i] = float64(rsigma) * (float64(dz[i])*float64(g) - xhat[i]*slope - mean)
			if a.Add.Data != nil {
				row[i] += float64(a.Add.row(r, cols)[i])
			}
			dgamma[i] += float64(dz[i]) * xhat[i]
			dbeta[i] += float64(dz[i])
		}
		dx = append(dx, row)
	}
	return dx, dgamma, dbeta
}

func TestNormGradOfNothing(t *testing.T) {
	NormGrad(&Gradient{G: make([]float32, 3), DGamma: make([]float32, 3)})
	NormGrad(&Gradient{RSigma: make([]float32, 3)})
}

func TestNorms(t *testing.T) {
	const rows, eps = 3, 1e-5
	kerneltest.EachFeature(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		eachWidth(func(cols int) {
			for kind := range 4 {
				x, y, g := newGaps(rng, rows, cols), newGaps(rng, rows, cols), newGaps(rng, 3, cols)
				mu, rsigma := make([]float32, rows+1), make([]float32, rows+1)
				from := gaps{Rows: Rows{x.before, x.Pitch}}
				if kind&1 != 0 {
					y = x
				}
				center := kind&2 != 0
				if center {
					LayerNorm(y.Rows, x.Rows, g.row(0, cols), g.row(1, cols), mu[:rows], rsigma[:rows], eps)
				} else {
					RMSNorm(y.Rows, x.Rows, g.row(0, cols), rsigma[:rows], eps)
				}
				for r := range rows {
					mean, root := moments64(from.row(r, cols), eps, center)
					require.InDelta(t, mean, mu[r], 1e-6)
					require.InEpsilon(t, root, rsigma[r], 1e-6)
					for i, v := range from.row(r, cols) {
						want := (float64(v) - mean) * root * float64(g.row(0, cols)[i])
						if center {
							want += float64(g.row(1, cols)[i])
						}
						require.InDelta(t, want, y.row(r, cols)[i], 2e-6, "element %d of %d", i, cols)
					}
				}
				y.requireKept(t)
				require.Zero(t, mu[rows])
				require.Zero(t, rsigma[rows])
				require.Equal(t, g.before, g.Data)
			}
		})
	})
}

// moments64 returns the mean and the inverse deviation of a row, or 0 and the inverse
// root mean square.
func moments64(x []float32, eps float64, center bool) (mean, root float64) {
	if center {
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
	}
	for _, v := range x {
		root += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	return mean, 1 / math.Sqrt(root+eps)
}

func TestLayerNormOfRowsFarFromZero(t *testing.T) {
	const cols, eps = 300, 1e-12
	tests := map[string]func(i int, noise float64) float64{
		"large mean":        func(_ int, noise float64) float64 { return 1e6 + noise },
		"close to rounding": func(_ int, noise float64) float64 { return 1e7 + math.Round(noise) },
		"first far away": func(i int, noise float64) float64 {
			if i == 0 {
				return -3e8
			}
			return noise
		},
		"last far away": func(i int, noise float64) float64 {
			if i == cols-1 {
				return 3e8
			}
			return noise
		},
		"ends of the range": func(i int, _ float64) float64 { return math.MaxFloat32 * float64(1-2*(i&1)) },
		"tiny":              func(_ int, noise float64) float64 { return 1e-3 + 1e-6*noise },
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for name, value := range tests {
			rng := rand.New(rand.NewPCG(5, 6))
			x, y, ones, zeros := make([]float32, cols), make([]float32, cols), make([]float32, cols), make([]float32, cols)
			for i := range x {
				x[i], ones[i] = float32(value(i, rng.NormFloat64())), 1
			}
			var mu, rsigma [1]float32
			LayerNorm(Rows{y, cols}, Rows{x, cols}, ones, zeros, mu[:], rsigma[:], eps)
			mean, root := moments64(x, eps, true)
			assert.InDelta(t, mean, mu[0], 1e-7*math.Abs(mean)+1e-7/root, name)
			assert.InEpsilon(t, root, rsigma[0], 1e-6, name)
			for i, v := range x {
				require.InDelta(t, (float64(v)-mean)*root, y[i], 1e-5, "%s: element %d", name, i)
			}
		}
	})
}

func TestLayerNormOfRowsThatAreNotFinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, bad := range []float32{inf, -inf, nan} {
			for at := range 40 {
				x, y, ones := make([]float32, 120), make([]float32, 120), make([]float32, 40)
				x[40+at] = bad
				var mu, rsigma [3]float32
				LayerNorm(Rows{y, 40}, Rows{x, 40}, ones, ones, mu[:], rsigma[:], 1e-5)
				for i, v := range y {
					require.Equal(t, i/40 == 1, v != v, "%v at %d: element %d", bad, at, i)
				}
				if bad == bad {
					require.Equal(t, bad, mu[1])
				}
			}
		}
	})
}
