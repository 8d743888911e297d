package posttrain

import (
	"math"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
)

// Preference is the loss of direct preference optimization for batches of pairs, whose rows 2i and
// 2i+1 are a chosen and a rejected answer y to one prompt:
//
//	m = β·((log p(chosen) − log r(chosen)) − (log p(rejected) − log r(rejected)))
//	loss = mean over the pairs of log(1 + exp(−m))
//
// log p is the sum of the log probabilities of the tokens of the answer under the model, and log r
// that under the reference, the weights that training began with. A token is one of the answer if
// its weight is not 0; the weights of a row add up to 1. Source: Rafailov et al., Direct Preference
// Optimization (2023).
//
// It belongs to one goroutine.
type Preference struct {
	Beta float64

	// Reference runs the weights that training began with, forward only, over batches of the size
	// of a micro batch.
	Reference *model.Pass

	own, reference []float64 // log probabilities by row
}

// Loss returns the loss for a Pass that trains.
func (p *Preference) Loss() model.Loss {
	ce := model.CrossEntropy()
	return model.Loss{
		Forward: func(b *model.LossBatch) (float64, error) {
			if _, err := ce.Forward(b); err != nil {
				return 0, err
			}
			var err error
			if p.own, err = logProbabilities(p.own, b); err != nil {
				return 0, err
			}
			if err := p.refer(b); err != nil {
				return 0, err
			}
			sum, pairs := 0.0, len(p.own)/2
			for i := range pairs {
				sum += softplus(-p.margin(i))
			}
			return sum / float64(pairs), nil
		},
		Backward: func(b *model.LossBatch) error {
			err := tensor.Edit(b.DLosses, func(gradients []float32) {
				for i := range gradients {
					row := i / b.Batch.Seq
					if w := b.Weights[i]; w != 0 {
						gradients[i] *= float32(2*p.slope(row)) / w
					}
				}
			})
			if err != nil {
				return err
			}
			return ce.Backward(b)
		},
	}
}

// refer computes the log probabilities under the reference.
func (p *Preference) refer(b *model.LossBatch) error {
	if err := p.Reference.SetBatch(b.Batch); err != nil {
		return err
	}
	ce := model.CrossEntropy()
	p.Reference.SetLoss(model.Loss{Forward: func(b *model.LossBatch) (float64, error) {
		loss, err := ce.Forward(b)
		if err == nil {
			p.reference, err = logProbabilities(p.reference, b)
		}
		return loss, err
	}})
	_, err := p.Reference.Loss()
	return err
}

// logProbabilities returns the log probability of the answer of each row, in the memory of into.
func logProbabilities(into []float64, b *model.LossBatch) ([]float64, error) {
	losses, err := tensor.Read[float32](b.Losses)
	if err != nil {
		return nil, err
	}
	seq := b.Batch.Seq
	into = into[:0]
	for at, loss := range losses {
		if at%seq == 0 {
			into = append(into, 0)
		}
		if b.Weights[at] != 0 {
			into[len(into)-1] -= float64(loss)
		}
	}
	return into, nil
}

// margin returns how much more the model prefers the chosen answer of a pair than the reference
// does.
func (p *Preference) margin(pair int) float64 {
	chosen, rejected := 2*pair, 2*pair+1
	return p.Beta * ((p.own[chosen] - p.reference[chosen]) - (p.own[rejected] - p.reference[rejected]))
}

// slope returns the derivative of the loss of a pair by the loss of a token in a row.
func (p *Preference) slope(row int) float64 {
	s := p.Beta / (1 + math.Exp(p.margin(row/2)))
	if row%2 == 1 {
		return -s
	}
	return s
}

// softplus is log(1 + exp(x)) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
