package optim

import (
	"errors"
	"fmt"
)

// OptimizerConfig are the parameters of the optimizer, with Megatron's names.
type OptimizerConfig struct {
	Beta1       float64 `param:"adam_beta1"`
	Beta2       float64 `param:"adam_beta2"`
	Eps         float64 `param:"adam_eps"`
	WeightDecay float64 `param:"weight_decay"`
	ClipGrad    float64 `param:"clip_grad"` // largest global norm; 0 means no clipping
}

// Validate returns every fault of the configuration.
func (c OptimizerConfig) Validate() error {
	var faults []error
	check := func(ok bool, key string, got float64, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: got %v, want %s", key, got, want))
		}
	}
	check(c.Beta1 >= 0 && c.Beta1 < 1, "adam_beta1", c.Beta1, "0 <= adam_beta1 < 1")
	check(c.Beta2 >= 0 && c.Beta2 < 1, "adam_beta2", c.Beta2, "0 <= adam_beta2 < 1")
	check(c.Eps > 0, "adam_eps", c.Eps, "a number > 0")
	check(c.WeightDecay >= 0, "weight_decay", c.WeightDecay, "a number >= 0")
	check(c.ClipGrad >= 0, "clip_grad", c.ClipGrad, "a number >= 0")
	return errors.Join(faults...)
}
