package model

import (
	"fmt"

	"github.com/primus-fl/primus/tensor"
)

// Loss is the function of the logits that training minimises.
type Loss struct {
	// Forward writes Losses and LSE of every token and returns the loss.
	Forward func(*LossBatch) (float64, error)

	// Backward writes DLogits, the gradient of Σ DLosses·losses and of the other terms of the loss.
	// It follows Forward on the same batch and may change DLosses.
	Backward func(*LossBatch) error

	linear bool // the loss is that of CrossEntropy, which may be computed without logits
}

// LossBatch is the argument of a Loss. T is the number of tokens of the batch.
type LossBatch struct {
	Logits  *tensor.Tensor // [T vocab], of the type of activations; those of CrossEntropy may not be kept
	Targets *tensor.Tensor // i32 [T]
	Losses  *tensor.Tensor // f32 [T], nats
	LSE     *tensor.Tensor // f32 [T], log Σ exp of a row of the logits
	Weights []float32      // [T], the weights of the losses in a mean; nil means 1 for each
	DLosses *tensor.Tensor // f32 [T], Weights times a factor: 1/T for a mean of T tokens, less for a part of a global batch
	DLogits *tensor.Tensor // as Logits, with which it may share memory

	Batch Batch // that of SetBatch, in the memory of its caller

	pass    *Pass
	entropy float64 // mean cross entropy of the last forward pass
}

// CrossEntropy returns the loss of language models: the weighted mean over tokens of LSE − logit of
// the target.
func CrossEntropy() Loss {
	return Loss{
		linear: true,
		Forward: func(b *LossBatch) (float64, error) {
			wait, err := b.crossEntropy()
			if err != nil {
				return 0, err
			}
			return wait()
		},
		Backward: func(b *LossBatch) error {
			r := &b.pass.current
			b.pass.entropy.Backward(r, b.Targets, b.DLosses)
			return r.Err
		},
	}
}

// crossEntropy queues the forward pass of the cross entropy; wait returns its mean.
func (b *LossBatch) crossEntropy() (wait func() (float64, error), err error) {
	r := &b.pass.current
	if b.pass.linearLoss() {
		b.pass.linear.forward(r, b.pass)
	} else {
		b.pass.entropy.Forward(r, b.Targets)
	}
	if r.Err != nil {
		return nil, r.Err
	}
	read, err := tensor.ReadLater[float32](b.Losses)
	if err != nil {
		return nil, fmt.Errorf("losses of the tokens: %w", err)
	}
	return func() (float64, error) {
		losses, err := read()
		if err != nil {
			return 0, fmt.Errorf("losses of the tokens: %w", err)
		}
		b.entropy = b.Mean(func(i int) float64 { return float64(losses[i]) })
		return b.entropy, nil
	}, nil
}

// CrossEntropy returns the weighted mean of the losses of the tokens in the last Loss, without the
// terms that SetLoss added.
func (p *Pass) CrossEntropy() float64 { return p.lossArgs.entropy }

// Mean returns Σ weight·value / Σ weight over the tokens, 0 if no token counts. It does not ask for
// the values of tokens of weight 0.
func (b *LossBatch) Mean(value func(i int) float64) float64 {
	n := b.Losses.NumElements()
	sum, total := 0.0, float64(n)
	if b.Weights == nil {
		for i := range n {
			sum += value(i)
		}
		return sum / total
	}
	total = 0
	for i, w := range b.Weights {
		if w != 0 {
			sum, total = sum+float64(w)*value(i), total+float64(w)
		}
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

// SetLoss replaces the loss of following passes, which is CrossEntropy by default.
func (p *Pass) SetLoss(l Loss) { p.loss = l }

func (p *Pass) lossForward(r *Run) (float64, error) {
	if r.Err != nil || !p.stretch.Last {
		return 0, r.Err
	}
	r.Leave("loss")
	return p.loss.Forward(&p.lossArgs)
}

func (p *Pass) lossBackward(r *Run, scale float32) {
	if r.Err = p.lossArgs.weigh(scale); r.Err == nil {
		r.Err = p.loss.Backward(&p.lossArgs)
	}
}

// weigh writes DLosses.
func (b *LossBatch) weigh(scale float32) error {
	return tensor.Fill(b.DLosses, func(dLosses []float32) {
		for i := range dLosses {
			dLosses[i] = scale
			if b.Weights != nil {
				dLosses[i] *= b.Weights[i]
			}
		}
	})
}
