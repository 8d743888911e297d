package patches

import (
	"fmt"

	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
)

const logGradientNoise = "log_gradient_noise"

func gradientNoise() patch.Patch {
	return patch.Patch{
		ID:          "native.gradient_noise",
		Description: "Log the gradient noise scale, the batch size beyond which a larger batch helps little",
		Backend:     native.Framework, Phase: patch.BeforeTrain, Style: patch.Wrapping,
		Symbols: []string{native.BackwardStepPoint.Name()}, Keys: []string{logGradientNoise},
		Condition: patch.Condition{
			Text: logGradientNoise + " is set",
			Holds: func(c *patch.Context) (bool, error) {
				on, err := patch.Param(c, logGradientNoise, false)
				if err != nil || !on {
					return false, err
				}
				small, big, err := batchSizes(c)
				if err == nil && big <= small {
					err = fmt.Errorf("%s compares micro batches with the global batch: given micro_batch_size %d and global_batch_size %d, want a larger global batch",
						logGradientNoise, small, big)
				}
				return true, err
			},
		},
		Apply: func(c *patch.Context) error {
			small, big, err := batchSizes(c)
			if err != nil {
				return err
			}
			interval, err := patch.Param(c, "log_interval", int64(1))
			if err != nil {
				return err
			}
			return patch.Wrap(c, native.BackwardStepPoint, func(next func(native.BackwardStep) error) func(native.BackwardStep) error {
				n := noise{small: float64(small), big: float64(big)}
				return func(b native.BackwardStep) error {
					if err := next(b); err != nil || b.Step%int(interval) != 0 {
						return err
					}
					line, err := n.observe(b)
					if line != "" {
						c.Log.Info(line)
					}
					return err
				}
			})
		},
	}
}

// batchSizes returns the sequences of a micro batch and of the global batch.
func batchSizes(c *patch.Context) (small, big int64, err error) {
	if small, err = patch.Param(c, "micro_batch_size", int64(0)); err != nil {
		return 0, 0, err
	}
	big, err = patch.Param(c, "global_batch_size", int64(0))
	return small, big, err
}

// noise estimates the simple noise scale of the gradient
//
//	B = S/G,  G = (b·|gb|² − s·|gs|²)/(b−s),  S = (|gs|² − |gb|²)/(1/s − 1/b)
//
// from the norms |gs| of the gradient of a micro batch of s sequences and |gb| of the global batch
// of b. G, the squared norm of the true gradient, and S, the trace of the covariance of that of one
// sequence, are unbiased and noisy, so that running means of the two are divided; the weight of a
// new measurement is noiseWeight.
//
// Source: McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", arXiv:1812.06162,
// appendix A.1.
type noise struct {
	small, big  float64 // sequences
	smallSquare float64 // |gs|² of the current step
	g, s        float64 // running means
	seen        bool
}

const noiseWeight = 0.1

// observe takes the norms of a step, after its first and its last micro batch, and returns after
// the last one what to log.
func (n *noise) observe(b native.BackwardStep) (line string, err error) {
	if b.Micro != 0 && b.Micro != b.Micros-1 {
		return "", nil
	}
	norm, err := b.GradNorm()
	if err != nil {
		return "", fmt.Errorf("gradient noise: %w", err)
	}
	if b.Micro == 0 { // its share of the global batch is 1/Micros
		norm *= float64(b.Micros)
		n.smallSquare = norm * norm
		return "", nil
	}
	bigSquare := norm * norm
	g := (n.big*bigSquare - n.small*n.smallSquare) / (n.big - n.small)
	s := (n.smallSquare - bigSquare) / (1/n.small - 1/n.big)
	if !n.seen {
		n.g, n.s, n.seen = g, s, true
	} else {
		n.g += noiseWeight * (g - n.g)
		n.s += noiseWeight * (s - n.s)
	}
	if n.g <= 0 || n.s <= 0 {
		return fmt.Sprintf("step %d: gradient noise scale: not measurable yet (squared norm %.3g, variance %.3g)", b.Step, n.g, n.s), nil
	}
	return fmt.Sprintf("step %d: gradient noise scale %.1f sequences (squared norm %.3g, variance %.3g)", b.Step, n.s/n.g, n.g, n.s), nil
}
