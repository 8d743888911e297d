package optim

import "errors"

// EarlyStoppingConfig are the parameters that end a run whose validation loss does not fall any
// more, with the names of Hugging Face's trainer.
type EarlyStoppingConfig struct {
	Patience  int     `param:"early_stopping_patience"`  // evaluations without improvement; 0 means no end
	Threshold float64 `param:"early_stopping_threshold"` // what counts as an improvement is larger
}

// Validate returns every fault of the configuration.
func (c EarlyStoppingConfig) Validate() error {
	f := faults{}
	f.check(c.Patience >= 0, "early_stopping_patience", c.Patience, "a number >= 0")
	f.check(c.Threshold >= 0, "early_stopping_threshold", c.Threshold, "a number >= 0")
	return errors.Join(f...)
}

// BestLoss is the best validation loss of a run. Its fields are what a checkpoint holds.
type BestLoss struct {
	Loss  float64 `json:"loss"`
	Step  int     `json:"step"`  // 0 before the first evaluation
	Since int     `json:"since"` // evaluations after it
}

// Update takes the loss of an evaluation after a step.
func (b *BestLoss) Update(c EarlyStoppingConfig, step int, loss float64) {
	if b.Step == 0 || loss < b.Loss-c.Threshold {
		*b = BestLoss{Loss: loss, Step: step}
		return
	}
	b.Since++
}

// Ends reports whether the run ends.
func (b *BestLoss) Ends(c EarlyStoppingConfig) bool { return c.Patience > 0 && b.Since >= c.Patience }
