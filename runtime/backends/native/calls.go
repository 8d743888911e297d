package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/tensor"
)

// tracer makes the calls of a run on a Manager that traces.
type tracer struct {
	*engine
	manager *opmanager.Manager
	backend device.Backend
	batch   model.Batch
	prompt  []int32 // of the text at the end
	pass    *model.Pass
}

// expectCalls makes known to the Manager which calls the run is going to make. The error says which
// of them the policy leaves without an impl.
func (t *trainer) expectCalls() error {
	batch := model.NewBatch(t.args.MicroBatchSize, t.args.SeqLength)
	at := t.sampler.Position()
	err := t.sampler.Batch(&batch)
	t.sampler.Seek(at)
	var calls []opmanager.ExpectedCall
	if err == nil {
		var prompt string
		if prompt, err = t.choosePrompt(); err == nil {
			calls, err = t.traceCalls(batch, t.args.tokenizer.Encode(nil, []byte(prompt)), t.tc.Device)
		}
	}
	if err != nil {
		t.tc.Log.Warn(fmt.Sprintf("whether a policy serves all calls of this run is not known before they come: %v", err))
	}
	return t.tc.Manager.Expect(calls)
}

// traceCalls returns the calls of a step on a batch, of an evaluation, and of the text that the run
// generates at its end. Nothing is computed or exchanged with other ranks, and no weight changes:
// memory is reserved and not used. A stage of a pipeline and a rank that has some of the experts
// trace nothing, since their calls depend on other ranks, and neither does a run on a device.
func (e *engine) traceCalls(batch model.Batch, prompt []int32, backend device.Backend) ([]opmanager.ExpectedCall, error) {
	if e.stage() || e.divided() && e.args.ExpertRanks() > 1 || !e.model.Params()[0].Value.OnHost() {
		return nil, nil
	}
	defer e.model.WeightsChanged()
	return e.manager.Trace(func(m *opmanager.Manager) (err error) {
		t := tracer{engine: e, manager: m, backend: backend, batch: batch.Slice(0, e.args.MicroBatchSize), prompt: prompt}
		if t.pass, err = e.model.NewPass(m, e.args.MicroBatchSize, e.args.SeqLength, true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.pass.Close()) }()
		for _, part := range []func() error{t.gradients, t.evaluate, t.update, t.generate} {
			if err := part(); err != nil {
				return err
			}
		}
		return nil
	})
}

// gradients makes the calls of two micro batches, of which the second adds to the gradients.
func (t *tracer) gradients() error {
	for i := range min(2, t.own()) {
		t.pass.Drop(uint64(t.args.Seed), uint64(i))
		t.pass.ExpectBackward(1, i > 0)
		if err := t.loss(); err != nil {
			return err
		}
		if err := t.pass.Backward(1, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) evaluate() error {
	t.pass.KeepAll()
	return t.loss()
}

// loss makes the calls of a forward pass, with the loss of evaluations: a patch of the loss is
// called for micro batches only.
func (t *tracer) loss() error {
	if err := t.pass.SetBatch(t.batch); err != nil {
		return err
	}
	t.pass.SetLoss(t.points.loss.Original())
	_, err := t.pass.Loss()
	return err
}

// update makes the calls that change weights.
func (t *tracer) update() (err error) {
	var grads []*tensor.Tensor
	for _, p := range t.params {
		grads = append(grads, p.Grad)
	}
	g, err := optim.NewGradients(t.args.ClipGrad, grads, t.manager, t.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if _, err := g.Clip(); err != nil {
		return err
	}
	if t.args.EMADecay > 0 {
		a, err := optim.NewAverage(t.args.EMADecay, t.params, t.manager, t.backend)
		if err != nil {
			return err
		}
		if err := errors.Join(a.Update(1), a.Close()); err != nil {
			return err
		}
	}
	o, err := optim.New(t.args.OptimizerConfig, t.params, t.manager, t.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	return o.Step(optim.Update{Step: 1, LR: t.args.Schedule.At(1), WeightDecay: t.args.WeightDecayAt(1, t.args.TrainIters)})
}

// generate makes the calls of a text that the model continues.
func (t *tracer) generate() (err error) {
	e, err := inference.New(t.model, t.args.tokenizer, t.manager, inference.Settings{Capacity: t.args.SeqLength})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	_, err = e.Generate(context.Background(), inference.Request{
		Prompt: t.prompt, MaxTokens: sampleLength, Slide: true,
		Sampling: inference.Sampling{Temperature: sampleTemperature, Seed: uint64(t.args.Seed)},
	}, nil)
	return err
}
