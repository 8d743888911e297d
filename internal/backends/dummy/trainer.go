package dummy

import (
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

// Args are the arguments that the trainer reads.
type Args struct {
	TrainIters int    `param:"train_iters"`
	Hello      string `param:"hello"`
}

// StepPoint is the work of a training step, which is empty.
var StepPoint = patch.NewPoint[func(step int) error]("dummy.step", "a step of training, counted from 1; once per step")

// pretrainTrainer is a trainer that trains nothing.
type pretrainTrainer struct {
	tc          *backend.TrainContext
	args        Args
	points      *patch.Points
	step        *patch.Slot[func(int) error]
	initialized bool
}

func newPretrainTrainer(tc *backend.TrainContext) (backend.Trainer, error) {
	t := &pretrainTrainer{tc: tc, points: &patch.Points{}}
	if _, err := document.Decode(tc.Args.Map(), &t.args); err != nil {
		return nil, err
	}
	t.step = patch.Declare(t.points, StepPoint, func(int) error { return nil })
	return t, nil
}

// Points returns the extension points of the trainer.
func (t *pretrainTrainer) Points() *patch.Points { return t.points }

// Setup is the place for checks before anything is built.
func (t *pretrainTrainer) Setup(context.Context) error {
	t.say("setup() on rank=%d", t.tc.Rank)
	return nil
}

// Init is the place to build model, optimizer and data.
func (t *pretrainTrainer) Init(context.Context) error {
	t.say("init()")
	t.initialized = true
	return nil
}

// Train calls the empty step.
func (t *pretrainTrainer) Train(ctx context.Context) error {
	if !t.initialized {
		return errors.New("DummyPretrainTrainer.init() must be called before train()")
	}
	t.say("train()")
	for step := 1; step <= t.args.TrainIters; step++ {
		if ctx.Err() != nil {
			return fmt.Errorf("%w at step %d of %d", backend.ErrInterrupted, step-1, t.args.TrainIters)
		}
		if err := t.step.Func()(step); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	t.say("training finished successfully.")
	return nil
}

// Cleanup is the place to close what was opened.
func (t *pretrainTrainer) Cleanup(cause error) error {
	status := "success"
	if cause != nil {
		status = "error"
	}
	t.say("cleanup(on_error=%s)", status)
	return nil
}

func (t *pretrainTrainer) say(format string, args ...any) {
	t.tc.Log.Info("[DummyPretrainTrainer] " + fmt.Sprintf(format, args...))
}

var (
	_ backend.Trainer  = (*pretrainTrainer)(nil)
	_ patch.Extensible = (*pretrainTrainer)(nil)
)
