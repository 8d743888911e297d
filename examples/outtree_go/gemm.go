package acme

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// gemmServes declines what genericGemm has no code for. It looks at arguments only, so that
// the choice of an impl can be explained without a call.
func gemmServes(a gemm.GenericGemmArgs) error {
	if a.Bias != nil || a.Gelu {
		return opregistry.Unsupported("bias and gelu: only plain products are served")
	}
	return nil
}

// genericGemm follows gemm.GenericGemm. Sums are f32; each row of D is computed by one worker.
func genericGemm(e *opregistry.Exec, a gemm.GenericGemmArgs) error {
	data, err := floats(a.A, a.B, a.D)
	if err != nil {
		return err
	}
	left, right, d := data[1], data[0], data[2]
	m, n, k := a.Dims()
	rowStep, step := k, 1 // of op(B) in B
	if a.TransB {
		rowStep, step = 1, m
	}
	alpha, beta := a.Alpha.Or(1), a.Beta.Or(1)
	if !a.Accumulate {
		beta = 0
	}
	e.Blocks(m, block, func(lo, hi int) {
		sums := e.Scratch(n)
		defer e.Release(sums)
		for i := lo; i < hi; i++ {
			out := d[i*n:][:n]
			clear(sums)
			for p := range k {
				v := left[i*rowStep+p*step]
				if a.TransA {
					for j := range sums {
						sums[j] += v * right[j*k+p]
					}
					continue
				}
				for j, w := range right[p*n:][:n] {
					sums[j] += v * w
				}
			}
			for j, sum := range sums {
				if beta == 0 {
					out[j] = alpha * sum // D is not read, as it may hold NaN
				} else {
					out[j] = alpha*sum + beta*out[j]
				}
			}
		}
	})
	return nil
}
