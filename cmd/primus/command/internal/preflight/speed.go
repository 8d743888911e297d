package preflight

import (
	"context"
	"fmt"
	"time"
)

// Sizes of what is measured.
const (
	productSize = 1024
	copySize    = 128 << 20
	repetitions = 5
)

// speed measures a product of matrices and a copy of memory, the best of several.
func (r *Report) speed(ctx context.Context, s Settings) {
	if s.Product != nil {
		best, err := bestOf(ctx, func() (time.Duration, error) { return s.Product(ctx, productSize) })
		if err != nil {
			r.add(Speed, "matrix product", Fail, err.Error(), "primus benchmark ops generic_gemm shows which impl fails")
		} else {
			rate := 2 * float64(productSize) * float64(productSize) * float64(productSize) / best.Seconds()
			r.Rates["matrix product"] = rate
			r.add(Speed, "matrix product", grade(s.Limits.ProductTFLOPS > 0 && rate < s.Limits.ProductTFLOPS*1e12, Fail),
				fmt.Sprintf("%.4g GFLOP/s on the CPUs, %d³ in float32", rate/1e9, productSize), fmt.Sprintf("below %.4g TFLOP/s", s.Limits.ProductTFLOPS))
		}
	}
	from, to := make([]byte, copySize), make([]byte, copySize)
	for i := range from {
		from[i] = byte(i)
	}
	best, err := bestOf(ctx, func() (time.Duration, error) {
		started := time.Now()
		copy(to, from)
		return time.Since(started), nil
	})
	if err != nil {
		r.add(Speed, "copy of memory", Fail, err.Error(), "the check was interrupted")
		return
	}
	rate := 2 * float64(copySize) / best.Seconds()
	r.Rates["copy of memory"] = rate
	r.add(Speed, "copy of memory", grade(s.Limits.CopyGBPerSecond > 0 && rate < s.Limits.CopyGBPerSecond*1e9, Fail),
		fmt.Sprintf("%.4g GB/s read and written by one thread", rate/1e9), fmt.Sprintf("below %.4g GB/s", s.Limits.CopyGBPerSecond))
}

func bestOf(ctx context.Context, measure func() (time.Duration, error)) (time.Duration, error) {
	var best time.Duration
	for i := range repetitions {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		took, err := measure()
		if err != nil {
			return 0, err
		}
		if took = max(took, time.Nanosecond); i == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
