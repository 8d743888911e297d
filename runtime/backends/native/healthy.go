package native

import (
	"fmt"
	"math"
	"slices"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/tensor"
)

// healthy returns an error if a weight or a moment is not finite, or if the loss of the weights is
// not finite. It is called before each save, so that a run that diverges keeps its last good
// checkpoint. The loss is that of the current micro batch, without patches and dropout.
func (t *trainer) healthy() error {
	if err := t.finiteWeights(); err != nil {
		return err
	}
	return t.finiteLoss(t.batch.Slice(0, t.args.MicroBatchSize))
}

// finiteLoss returns an error if the loss of the weights on a micro batch is not finite.
func (t *trainer) finiteLoss(of model.Batch) error {
	loss, _, err := t.plainLoss(of)
	if err == nil && !finite(loss) { // a failed op does not prevent a save
		return &NonFiniteError{Step: t.state.Step, What: "loss after the update", Value: loss, Reason: notSaved}
	}
	return nil
}

const notSaved = "the weights are not saved"

// finiteWeights returns an error for the first weight, or state of the optimizer, that is not
// finite.
func (t *trainer) finiteWeights() error {
	check := func(what string, of []model.Named) error {
		for _, n := range of {
			values, err := tensor.Read[float32](n.Tensor)
			if err != nil {
				return fmt.Errorf("%s%s: %w", what, n.Name, err)
			}
			if v, found := firstNonFinite(values); found {
				return notFinite(t.state.Step, what, n.Name, v, n.Tensor)
			}
		}
		return nil
	}
	if !t.args.AllowNonFinite {
		if err := check("weight ", slices.Concat(t.model.Tensors(), t.model.Adapters())); err != nil {
			return err
		}
		if err := check("average of the weight ", t.averages()); err != nil {
			return err
		}
	}
	return check("state of the optimizer ", t.optimizerState())
}

// notFinite returns the error of a tensor with the value v that is not finite.
func notFinite(step int, what, name string, v float64, of *tensor.Tensor) error {
	counted, err := weights.Count(name, of)
	if err != nil {
		return err
	}
	return &NonFiniteError{Step: step, What: what + name, Value: v, Reason: fmt.Sprintf("%v; %s", counted, notSaved)}
}

// firstNonFinite returns the first number that is NaN or infinite.
func firstNonFinite(values []float32) (v float64, found bool) {
	for _, x := range values {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return float64(x), true
		}
	}
	return 0, false
}

// checkLoaded returns an error when the weights of the checkpoint at path are not finite.
func (t *trainer) checkLoaded(path string) error {
	if err := t.finiteWeights(); err != nil {
		return fmt.Errorf("checkpoint %s cannot be trained further: %w; give load the directory of an earlier one", path, err)
	}
	return nil
}
