package native

import (
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

// The extension points of the trainer. Each is called once per step, micro batch or run, and none
// within an op.
var (
	// LossPoint is the loss that training minimises. Validation uses the original.
	LossPoint = patch.NewPoint[model.Loss]("native.loss", "what training minimises; once per micro batch")

	// SchedulePoint is the learning rate of a step, counted from 1.
	SchedulePoint = patch.NewPoint[func(step int) float64]("native.schedule", "the learning rate of a step; once per step")

	// OptimizerStepPoint updates the weights with the clipped gradients.
	OptimizerStepPoint = patch.NewPoint[func(step int, lr float64) error]("native.optimizer_step", "updates the weights; once per step")

	// DataOrderPoint fills the next global batch. A resumed run begins at the position of the
	// original sampler.
	DataOrderPoint = patch.NewPoint[func(*model.Batch) error]("native.data_order", "fills the next global batch; once per step")

	// ForwardStepPoint computes the loss of a micro batch.
	ForwardStepPoint = patch.NewPoint[func(model.Batch) (float64, error)]("native.forward_step", "the loss of a micro batch; once per micro batch")

	// BackwardStepPoint adds the gradients of the micro batch of the last forward step.
	BackwardStepPoint = patch.NewPoint[func(BackwardStep) error]("native.backward_step", "the gradients of a micro batch; once per micro batch")

	// LRScalePoint is the factor of the learning rate of a weight.
	LRScalePoint = patch.NewPoint[func(*model.Param) float64]("native.lr_scale", "the factor of the learning rate of a weight; once per weight, when the optimizer is made, so patches of phase setup only")
)

// BackwardStep says which micro batch of which step a backward step is.
type BackwardStep struct {
	Step          int // from 1
	Micro, Micros int // the micro batch, from 0, and their number per step on this rank

	// GradNorm returns the Euclidean norm of the present gradients, in which each micro batch is
	// weighted by its share of the global batch.
	GradNorm func() (float64, error)
}

// points are the slots of a trainer.
type points struct {
	all           *patch.Points
	loss          *patch.Slot[model.Loss]
	schedule      *patch.Slot[func(int) float64]
	optimizerStep *patch.Slot[func(int, float64) error]
	dataOrder     *patch.Slot[func(*model.Batch) error]
	forwardStep   *patch.Slot[func(model.Batch) (float64, error)]
	backwardStep  *patch.Slot[func(BackwardStep) error]
	lrScale       *patch.Slot[func(*model.Param) float64]
}

// Points returns the extension points of the trainer.
func (t *trainer) Points() *patch.Points { return t.points.all }

// declarePoints makes the slots, with sample as the original of the data order.
func (e *engine) declarePoints(sample func(*model.Batch) error) {
	all := &patch.Points{}
	e.points = points{
		all:           all,
		loss:          patch.Declare(all, LossPoint, e.objective()),
		schedule:      patch.Declare(all, SchedulePoint, e.args.Schedule.At),
		optimizerStep: patch.Declare(all, OptimizerStepPoint, e.update),
		dataOrder:     patch.Declare(all, DataOrderPoint, sample),
		forwardStep:   patch.Declare(all, ForwardStepPoint, e.forwardStep),
		backwardStep:  patch.Declare(all, BackwardStepPoint, e.backwardStep),
		lrScale:       patch.Declare(all, LRScalePoint, func(*model.Param) float64 { return 1 }),
	}
}

func (e *engine) forwardStep(b model.Batch) (float64, error) {
	if err := e.pass.SetBatch(b); err != nil {
		return 0, err
	}
	e.pass.SetLoss(e.points.loss.Func())
	return e.pass.Loss()
}

// own is the number of micro batches per step of this rank.
func (e *engine) own() int { return e.batch.Rows() / e.args.MicroBatchSize / e.groups.Data.Ranks }

// update updates the weights with the clipped gradients.
func (e *engine) update(step int, lr float64) error {
	return e.optimizer.Step(optim.Update{Step: step, LR: lr, WeightDecay: e.args.WeightDecayAt(step, e.args.TrainIters)})
}

// drop sets the dropout of a micro batch of this rank. What is random depends on its number in the
// global batch, so that it is the same with any number of ranks.
func (e *engine) drop(step, micro int) {
	e.pass.Drop(e.drawn(step, micro))
}

// drawn returns what the random numbers of a micro batch of this rank depend on.
func (e *engine) drawn(step, micro int) (seed, batch uint64) {
	return uint64(e.args.Seed), uint64((step-1)*e.args.microBatches() + micro + e.groups.Data.Rank*e.own())
}

// plainLoss returns the loss of the weights on a micro batch, without patches and dropout, and the
// weight of the tokens that it is the mean of, which is 0 where this rank does not know it.
func (e *engine) plainLoss(b model.Batch) (loss, weight float64, err error) {
	if e.conveyor != nil {
		return e.conveyor.loss(b)
	}
	e.pass.SetLoss(e.points.loss.Original())
	e.pass.KeepAll()
	if err := e.pass.SetBatch(b); err != nil {
		return 0, 0, err
	}
	loss, err = e.pass.Loss()
	return loss, e.pass.Weight(), err
}

// forward calls the forward step of a micro batch of this rank.
func (e *engine) forward(step, micro int) (float64, error) {
	e.progress.Enter(backend.PhaseForward, step)
	e.drop(step, micro)
	return e.points.forwardStep.Func()(e.micro(micro))
}

// forwardBackward computes the loss and adds the gradients of a micro batch of this rank. When no
// patch asks for the loss and the model lies on a device, the loss is read when the gradients have
// been queued, so that the device does not wait for the host. When a loss is not finite, the
// gradients are not computed, or mean nothing.
func (e *engine) forwardBackward(step, micro int) (loss float64, err error) {
	if p := &e.points; !p.forwardStep.Patched() && !p.loss.Patched() && !p.backwardStep.Patched() {
		e.pass.ExpectBackward(float32(e.scale()/e.weight()), micro > 0)
	}
	if !e.pass.OnDevice() || e.points.forwardStep.Patched() || e.points.loss.Patched() || e.args.stage == stageDPO {
		loss, err = e.forward(step, micro)
		if err != nil || !finite(loss) && e.world.Alone() {
			return loss, err
		}
		return loss, e.backward(step, micro)
	}
	e.progress.Enter(backend.PhaseForward, step)
	e.drop(step, micro)
	wait, err := e.pass.QueueCrossEntropy(e.micro(micro))
	if err != nil {
		return 0, err
	}
	failure := e.backward(step, micro)
	if loss, err = wait(); err == nil && finite(loss) {
		err = failure // which a loss that is not finite explains
	}
	return loss, err
}

// micro returns a micro batch of this rank.
func (e *engine) micro(i int) model.Batch {
	i += e.groups.Data.Rank * e.own()
	return e.batch.Slice(i*e.args.MicroBatchSize, (i+1)*e.args.MicroBatchSize)
}

// backward calls the backward step of a micro batch of this rank.
func (e *engine) backward(step, micro int) error {
	e.progress.Enter(backend.PhaseBackward, step)
	return e.points.backwardStep.Func()(BackwardStep{Step: step, Micro: micro, Micros: e.own(), GradNorm: e.gradients.Norm})
}

// scale is the factor of losses in the backward pass.
func (e *engine) scale() float64 {
	if e.lossScale == nil {
		return 1
	}
	return e.lossScale.Scale
}

func (e *engine) backwardStep(b BackwardStep) error {
	return e.pass.Backward(float32(e.scale()/e.weight()), b.Micro > 0)
}
