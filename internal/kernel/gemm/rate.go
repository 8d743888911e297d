package gemm

import "time"

// rateRounds is how often PairRate times each kernel; the least time counts, so that what other
// processes take does not.
const (
	rateRounds = 60
	rateTiles  = 8
	rateSteps  = 512
)

// PairRate measures how fast products of bfloat16 are with PairKernel, relative to those of the
// kernel for f32 in the same number of multiplications. It takes about 5 ms, and returns 0 without
// such a kernel.
func PairRate() float64 {
	pairs, ok := PairKernel()
	if !ok {
		return 0
	}
	wide := BestKernel(0)
	a, b, c := make([]float32, MaxMR*rateSteps), make([]float32, MaxNR*rateSteps), make([]float32, MaxMR*MaxNR)
	for _, operand := range [][]float32{a, b} {
		for i := range operand {
			operand[i] = 1
		}
	}
	measure := func(k Kernel, steps int) time.Duration {
		t := Tile{A: a, ARow: steps, AStep: 1, B: b, BStep: k.NR, C: c, CRow: k.NR, K: steps, Rows: k.MR, Cols: k.NR, Alpha: 1}
		begin := time.Now()
		for range rateTiles {
			k.Run(&t)
		}
		return time.Since(begin)
	}
	least := [2]time.Duration{1 << 40, 1 << 40}
	for range rateRounds {
		least[0] = min(least[0], measure(pairs, rateSteps/2))
		least[1] = min(least[1], measure(wide, rateSteps))
	}
	perProduct := func(d time.Duration, k Kernel) float64 { return float64(max(d, 1)) / float64(k.MR*k.NR) }
	return perProduct(least[1], wide) / perProduct(least[0], pairs)
}
