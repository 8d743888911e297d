package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
)

// tracer makes the calls of a run.
type tracer struct {
	*engine // with a Manager that traces, and passes that call its ops
	backend device.Backend
	micro   model.Batch
	prompt  []int32 // of the text at the end
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
			calls, err = t.knownCalls(batch, t.args.tokenizer.Encode(nil, []byte(prompt)))
		}
	}
	if err != nil {
		t.tc.Log.Warn(fmt.Sprintf("whether a policy serves all calls of this run is not known before they come: %v", err))
	}
	return t.world.Agree("check the policy", t.tc.Manager.Expect(calls))
}

// knownCalls returns the calls of the run. Those of a run on a device are those of a second model,
// which takes none of its memory.
func (t *trainer) knownCalls(batch model.Batch, prompt []int32) ([]opmanager.ExpectedCall, error) {
	outside, err := onDevice(t.tc.Device)
	if err != nil {
		return nil, err
	}
	if !outside {
		return t.traceCalls(batch, prompt, t.tc.Device)
	}
	e := engine{args: t.args, manager: t.manager, log: t.log, points: t.points}
	return e.plannedCalls(t.world.Group, t.tc.Device, batch, prompt)
}

// traceCalls returns the calls of a step on a batch, of an evaluation, and of the text that the run
// generates at its end. Nothing is computed or exchanged with other ranks, and no weight changes:
// memory is reserved and not used.
func (e *engine) traceCalls(batch model.Batch, prompt []int32, backend device.Backend) ([]opmanager.ExpectedCall, error) {
	defer e.model.WeightsChanged()
	return e.manager.Trace(func(m *opmanager.Manager) error {
		own := *e
		own.manager, own.pass, own.conveyor, own.takeSave, own.saveReady, own.timeIsUp = m, nil, nil, nil, nil, nil
		t := tracer{&own, backend, batch.Slice(0, e.args.MicroBatchSize), prompt}
		return e.world.Trace(m, t.trace)
	})
}

// plannedCalls returns the calls of a rank of a job, with a model of its own.
func (e engine) plannedCalls(of collective.Group, on device.Backend, batch model.Batch, prompt []int32) (calls []opmanager.ExpectedCall, err error) {
	stand, err := memory.NewStandIn(on)
	if err != nil {
		return nil, err
	}
	e.world = world.New(e.manager, of)
	defer e.world.Close()
	defer func() { err = errors.Join(err, e.close(), stand.Close()) }()
	if err := e.allocate(stand); err != nil {
		return nil, err
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	e.params = e.updated()
	return e.traceCalls(batch, prompt, stand)
}

func (t *tracer) trace() (err error) {
	if t.stage() {
		t.conveyor, err = t.newConveyor(t.manager)
	} else {
		t.pass, err = t.model.NewPass(t.manager, t.args.MicroBatchSize, t.args.SeqLength, true)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, part := range []func() error{t.gradients, t.evaluate, t.exchange, t.update, t.generate} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) close() error {
	if t.conveyor != nil {
		return t.conveyor.close()
	}
	return t.pass.Close()
}

// gradients makes the calls of two micro batches, of which the second adds to the gradients, or
// those that a stage makes in a step.
func (t *tracer) gradients() error {
	if t.conveyor != nil {
		return t.conveyor.run(tracedStage{t.conveyor, t})
	}
	for i := range min(2, t.own()) {
		t.pass.ExpectBackward(1, i > 0)
		if err := t.loss(t.pass, i); err != nil {
			return err
		}
		if err := t.pass.Backward(1, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// loss makes the calls of a forward pass that trains, with the loss of evaluations: a patch of the
// loss is called for micro batches only.
func (t *tracer) loss(p *model.Pass, micro int) error {
	if err := p.SetBatch(t.micro); err != nil {
		return err
	}
	p.Drop(uint64(t.args.Seed), uint64(micro))
	p.SetLoss(t.points.loss.Original())
	_, err := p.Loss()
	return err
}

// tracedStage makes the calls of a stage.
type tracedStage struct {
	*conveyor
	t *tracer
}

// Forward is that of stages.Work.
func (s tracedStage) Forward(at stages.Slot, micro int) error { return s.t.loss(s.pass(at), micro) }

// Backward is that of stages.Work.
func (s tracedStage) Backward(at stages.Slot, _ int, weights bool) error {
	return s.backward(at, 1, weights)
}

func (t *tracer) evaluate() error {
	_, _, err := t.plainLoss(t.micro)
	return err
}

// exchange makes the calls that add up losses and gradients, and that share the weights.
func (t *tracer) exchange() error {
	if err := t.links.wait(); err != nil {
		return err
	}
	if _, err := t.reduce(context.Background(), &means{}, 0); err != nil {
		return err
	}
	if !t.args.Sharded {
		return nil
	}
	t.links.gather()
	return t.gathered()
}

// update makes the calls that change weights.
func (t *tracer) update() (err error) {
	g, err := t.newGradients(t.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if t.args.ClipGrad > 0 || t.args.FP16 {
		g.Scaled(2) // they are scaled in any case
	}
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
	if t.stage() {
		return nil
	}
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
