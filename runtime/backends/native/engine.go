package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/health"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// engine computes steps: model, passes and optimizer for one global batch.
type engine struct {
	args    *Args
	manager *opmanager.Manager
	log     *slog.Logger
	points  points

	progress  *backend.Progress
	takeSave  func() bool // whether this rank was asked for a checkpoint since the last call
	saveReady func() bool // whether this rank has done its part of a checkpoint; nil in a benchmark
	timeIsUp  func() bool // whether the first rank ends the run because of its time; nil if no time is given

	world   *world.World
	groups  world.Groups  // the ranks with which this one shares work
	links   rankLinks     // with the ranks that have the same weights
	shard   *shards.Shard // what this rank updates; nil if that is everything
	weights *shards.Shard // the weights of this rank; nil if it has all
	early   bool          // the gradients of the current micro batch are sent when they are final

	model     *model.Model
	pass      *model.Pass
	conveyor  *conveyor     // of a pipeline; nil without one
	params    []optim.Param // that this rank updates
	optimizer optim.Optimizer
	gradients *optim.Gradients
	lossScale *optim.LossScale // nil without fp16
	average   *optim.Average   // of the weights; nil without
	batch     model.Batch      // global, of all ranks
	stop      bool             // a rank of the job wants to end; known after a step
	saveAsked bool             // a rank was asked for a checkpoint; known after a step
	over      bool             // the time of the run is over; known after a step
	allReady  bool             // all ranks have done their part of a checkpoint; known after a step

	computed, exchanged time.Duration // computing, and waiting for other ranks, in the steps of this run

	preference *posttrain.Preference // in stage dpo

	monitor *health.Monitor         // nil in a benchmark
	judged  func(backend.Judgement) // nil in a benchmark

	updating bool // the weights may be a mixture of two steps
}

// build allocates everything and initialises the weights from the seed.
func (e *engine) build(on device.Backend) (err error) {
	if err := e.allocate(on); err != nil {
		return err
	}
	if err := e.model.Init(uint64(e.args.Seed)); err != nil {
		return err
	}
	if err := e.makePasses(); err != nil {
		return err
	}
	e.params = e.updated()
	if e.optimizer, err = optim.New(e.args.OptimizerConfig, e.params, e.manager, on); err != nil {
		return err
	}
	if e.gradients, err = e.newGradients(on); err != nil {
		return err
	}
	if e.args.EMADecay > 0 {
		if e.average, err = optim.NewAverage(e.args.EMADecay, e.params, e.manager, on); err != nil {
			return err
		}
	}
	if e.args.FP16 {
		e.lossScale = optim.NewLossScale(e.args.LossScaleConfig)
	}
	return err
}

// newGradients returns what finds the norm of the gradients of all ranks, and clips those that this
// rank updates with.
func (e *engine) newGradients(on device.Backend) (*optim.Gradients, error) {
	var grads []*tensor.Tensor
	for _, p := range e.params {
		grads = append(grads, p.Grad)
	}
	g, err := optim.NewGradients(e.args.ClipGrad, grads, e.manager, on)
	if err == nil && e.shard != nil {
		g.Spread(e.counted(), func(square *float64) error { return e.world.Sum("add up the norms", square) })
	}
	return g, err
}

// makePasses makes what computes losses and gradients, and exchanges these.
func (e *engine) makePasses() (err error) {
	if e.stage() {
		if err := e.connect(); err != nil {
			return err
		}
		e.conveyor, err = e.newConveyor(e.manager)
		return err
	}
	if e.pass, err = e.model.NewPass(e.manager, e.args.MicroBatchSize, e.args.SeqLength, true); err != nil {
		return err
	}
	e.pass.Mark(e.progress.Op())
	if err := e.connect(); err != nil {
		return err
	}
	e.pass.Watch(model.Watch{Needs: e.links.need, Final: func(depth int) {
		if e.early {
			e.links.send(depth)
		}
	}})
	return nil
}

// allocate makes a model whose weights are 0, and the batch.
func (e *engine) allocate(backend device.Backend) (err error) {
	e.batch = model.NewBatch(e.args.GlobalBatchSize, e.args.SeqLength)
	part, err := e.part()
	if err != nil {
		return err
	}
	outside, err := onDevice(backend)
	if err != nil {
		return err
	}
	e.model, err = model.NewPart(e.args.built(outside), backend, part)
	return err
}

// objective returns what training minimises without patches.
func (e *engine) objective() model.Loss {
	if e.args.stage != stageDPO {
		return model.CrossEntropy()
	}
	e.preference = &posttrain.Preference{Beta: e.args.DPOBeta}
	return e.preference.Loss()
}

// close releases everything that build allocated, even if build failed.
func (e *engine) close() error {
	var faults []error
	if e.average != nil {
		faults = append(faults, e.average.Close())
	}
	if e.gradients != nil {
		faults = append(faults, e.gradients.Close())
	}
	if e.optimizer != nil {
		faults = append(faults, e.optimizer.Close())
	}
	if e.pass != nil {
		faults = append(faults, e.pass.Close())
	}
	if e.conveyor != nil {
		faults = append(faults, e.conveyor.close())
	}
	if e.model != nil {
		faults = append(faults, e.model.Close())
	}
	return errors.Join(faults...)
}

// largest replaces magnitudes by the largest of all ranks.
func (e *engine) largest(values []float64) error { return e.world.Largest("scales of fp8", values) }

// updates is the number of updates of the weights after a step, which is not skipped.
func (e *engine) updates(step int) int {
	return step - e.skipped()
}

// skipped is the number of steps whose gradients overflowed, or that were spikes whose updates were
// dropped.
func (e *engine) skipped() int {
	n := 0
	if e.lossScale != nil {
		n += e.lossScale.Skipped
	}
	if e.monitor != nil {
		n += e.monitor.Skipped
	}
	return n
}

// train computes the step with the number and learning rate of s on the current batch, and sets the
// losses, the norm and the times of the ranks in s. It returns errGivenUp if ctx ends before the
// weights change. In fp16 it leaves out the update when gradients overflow. If on_spike is skip, it
// leaves out those of spikes.
func (e *engine) train(ctx context.Context, s *backend.Step) error {
	e.model.RecordScales(true)
	err := e.computeGradients(ctx, s)
	e.model.RecordScales(false)
	update, err := e.judgeStep(s, err)
	if err != nil {
		return err
	}
	e.progress.Enter(backend.PhaseOptimizer, s.Step)
	if overflow := e.lossScale != nil && !finite(s.GradNorm); !update && !overflow {
		s.Skipped = true
		return nil
	}
	if e.pass != nil { // a pipeline has no scales of earlier steps
		if err := e.pass.UpdateScales(e.largest); err != nil {
			return fmt.Errorf("step %d: %w", s.Step, err)
		}
	}
	updates := e.updates(s.Step)
	if e.lossScale != nil {
		s.Skipped = !finite(s.GradNorm)
		e.lossScale.Update(!s.Skipped)
		s.LossScale = e.lossScale.Scale
		if s.Skipped {
			s.GradNorm = 0
			return nil
		}
	}
	e.updating = true
	if err := e.points.optimizerStep.Func()(updates, s.LR); err != nil {
		return fmt.Errorf("step %d: %w", s.Step, err)
	}
	e.model.WeightsChanged()
	if e.average != nil {
		if err := e.average.Update(updates); err != nil {
			return fmt.Errorf("step %d: %w", s.Step, err)
		}
	}
	return e.publish()
}
