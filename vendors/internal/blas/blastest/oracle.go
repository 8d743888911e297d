package blastest

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	gemmops "github.com/primus-fl/primus/ops/gemm"
)

// Oracle is generic_gemm in float64, for the conformance kit of package opstest.
// It takes every dtype and layout.
func Oracle() opregistry.Impl {
	return opregistry.Impl{Op: gemmops.GenericGemm, ID: "reference.blastest", Kind: opregistry.KindReference, Run: oracle}
}

// Unlimited is an impl that calls the library for every product, including small ones.
func Unlimited(id string, gemm Gemm) opregistry.Impl {
	return opregistry.Impl{Op: gemmops.GenericGemm, ID: id, Kind: opregistry.KindVendor, Vendor: "test", Run: gemm}
}

var oracle Gemm = func(_ *opregistry.Exec, a gemmops.GenericGemmArgs) error {
	m, n, k := a.Dims()
	left, right := wide(a.B.Float64s(), a.B.Shape().Cols(), a.TransB), wide(a.A.Float64s(), a.A.Shape().Cols(), a.TransA)
	d := a.D.Float64s()
	var bias, geluIn []float64
	if a.Bias != nil {
		bias = a.Bias.Float64s()
	}
	if a.Gelu {
		geluIn = a.GeluIn.Float64s()
	}
	for i := range m {
		for j := range n {
			var v float64
			for l := range k {
				v += left(i, l) * right(l, j)
			}
			v *= float64(a.Alpha.Or(1))
			if bias != nil && !a.Grad {
				v += bias[j]
			}
			at := i*n + j
			switch {
			case a.Gelu && a.Grad:
				_, slope := gelu(geluIn[at])
				v *= slope
			case a.Gelu:
				geluIn[at] = v
				v, _ = gelu(v)
			}
			if beta := float64(a.Beta.Or(1)); a.Accumulate && beta != 0 {
				v += beta * d[at]
			}
			d[at] = v
		}
	}
	if bias != nil && a.Grad {
		raw := wide(a.B.Float64s(), len(bias), false)
		for j := range bias {
			bias[j] = 0
			for i := range a.B.Shape().Rows() {
				bias[j] += raw(i, j)
			}
		}
		if err := a.Bias.SetFloat64s(bias); err != nil {
			return err
		}
	}
	if a.Gelu && !a.Grad {
		if err := a.GeluIn.SetFloat64s(geluIn); err != nil {
			return err
		}
	}
	return a.D.SetFloat64s(d)
}

// wide returns the elements of op(X) of a contiguous matrix.
func wide(x []float64, cols int, transposed bool) func(i, j int) float64 {
	if transposed {
		return func(i, j int) float64 { return x[j*cols+i] }
	}
	return func(i, j int) float64 { return x[i*cols+j] }
}

// gelu returns the tanh-GELU of x and its derivative there.
func gelu(x float64) (y, slope float64) {
	const c = 0.044715
	s := math.Sqrt(2 / math.Pi)
	t := math.Tanh(s * (x + c*x*x*x))
	return 0.5 * x * (1 + t), 0.5*(1+t) + 0.5*x*(1-t*t)*s*(1+3*c*x*x)
}
