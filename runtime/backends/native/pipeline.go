package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// plan returns how the layers are divided into the stages of a pipeline, nil for one stage.
func (a *Args) plan() (*stages.Plan, error) {
	if a.StageRanks() == 1 || a.planned != nil {
		return a.planned, nil
	}
	head := float64(a.VocabSize) * float64(a.HiddenSize)
	layers := a.FLOPsPerToken()/6 - head
	return a.Pipeline.Plan(a.StageRanks(), a.NumLayers, stages.Costs{Layer: layers / float64(a.NumLayers), Head: head})
}

// validatePipeline returns the faults of parameters that contradict a pipeline.
func (a *Args) validatePipeline() error {
	n := a.StageRanks()
	if n <= 1 {
		if a.Pipeline.ByDefault() {
			return nil
		}
		return errors.New("pipeline_model_parallel_size: given 1, want 2 or more with num_virtual_stages_per_pipeline_rank, num_layers_per_virtual_pipeline_stage or pipeline_model_parallel_layout")
	}
	if a.NumLayers < 1 || a.VocabSize < 0 { // which is another fault
		return nil
	}
	plan, err := a.plan()
	if err != nil {
		return err
	}
	a.planned = plan
	refuse := func(key string, got any, want string) error {
		return fmt.Errorf("%s: given %v, want %s with pipeline_model_parallel_size %d", key, got, want, n)
	}
	var faults []error
	if a.Recipe == fp8.Delayed {
		faults = append(faults, refuse("fp8_recipe", a.Recipe, "another one"))
	}
	if a.stage == stageDPO {
		faults = append(faults, refuse("stage", a.stage, "another one"))
	}
	if a.LoRA.Dropout > 0 && a.Adapts() {
		faults = append(faults, refuse("lora_dropout", a.LoRA.Dropout, "0"))
	}
	if plan.Apart && a.Recomputes() {
		faults = append(faults, fmt.Errorf("pp_algorithm: given %s, which may compute gradients of weights apart, want gpipe, 1f1b or interleaved with recomputed activations", plan.Name))
	}
	return errors.Join(faults...)
}

// checkMicroBatches returns an error if the schedule of the pipeline needs more micro batches than
// each pipeline has, and warns if stages wait because there are few.
func (a *Args) checkMicroBatches(tc *backend.TrainContext) error {
	plan, err := a.plan()
	if err != nil || plan == nil {
		return err
	}
	n := a.microBatchesOn(tc.WorldSize)
	if _, err := plan.Schedule(0, n); err != nil {
		return err
	}
	if n < plan.Stages && tc.Rank == 0 && tc.Log != nil {
		tc.Log.Warn(fmt.Sprintf("each pipeline of %d stages has %s in a step, fewer than stages, so that most of the time they wait: a larger global_batch_size or a smaller micro_batch_size fills them", plan.Stages, plaintext.Quantity(n, "micro batch", "micro batches")))
	}
	return nil
}

// microBatchesOn is the number of micro batches of each pipeline in a job of some ranks, or of as
// many as the parameters ask for at least.
func (a *Args) microBatchesOn(ranks int) int {
	return a.GlobalBatchSize / a.MicroBatchSize / a.Parallel.Planned(max(ranks, a.leastRanks())).Data.Ranks
}

// leastRanks is the smallest number of ranks that can train together.
func (a *Args) leastRanks() int { return a.StageRanks() * lcm(a.SequenceRanks(), a.ExpertRanks()) }

// conveyor runs the stage of a pipeline that this rank has.
type conveyor struct {
	e       *engine
	manager *opmanager.Manager // of the passes
	plan    *stages.Plan
	passes  [][]*model.Pass // by chunk and slot

	schedules map[int]*stages.Schedule // by the number of micro batches
	waited    time.Duration            // for messages of other stages, in the steps of this run

	// Of the current step.
	step  int
	means *means
}

// newConveyor makes the passes of the stage of this rank, which call ops of a Manager.
func (e *engine) newConveyor(m *opmanager.Manager) (*conveyor, error) {
	plan, err := e.args.plan()
	if err != nil {
		return nil, err
	}
	c := &conveyor{e: e, manager: m, plan: plan, passes: make([][]*model.Pass, plan.Chunks), schedules: map[int]*stages.Schedule{}}
	if _, err = c.schedule(e.own()); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// schedule returns what this rank does in a step of so many micro batches, for which it has the
// passes.
func (c *conveyor) schedule(microBatches int) (*stages.Schedule, error) {
	if s := c.schedules[microBatches]; s != nil {
		return s, nil
	}
	s, err := c.plan.Schedule(c.e.groups.Stages.Rank, microBatches)
	if err != nil {
		return nil, err
	}
	for chunk, n := range s.Slots {
		for len(c.passes[chunk]) < n {
			p, err := c.e.model.NewStagePass(c.manager, chunk, c.e.args.MicroBatchSize, c.e.args.SeqLength, c.plan.Apart)
			if err != nil {
				return nil, err
			}
			p.Mark(c.e.progress.Op())
			p.Watch(model.Watch{Needs: c.e.links.need})
			c.passes[chunk] = append(c.passes[chunk], p)
		}
	}
	c.schedules[microBatches] = s
	return s, nil
}

// close releases the passes.
func (c *conveyor) close() error {
	var faults []error
	for _, list := range c.passes {
		for _, p := range list {
			faults = append(faults, p.Close())
		}
	}
	return errors.Join(faults...)
}

// gradients computes the losses and the gradients of the micro batches of a step.
func (c *conveyor) gradients(step int, m *means) error {
	for _, f := range c.e.model.Flats() {
		if err := tensor.Fill(f.Grads, func(grads []float32) { clear(grads[:f.Used]) }); err != nil {
			return err
		}
	}
	c.step, c.means = step, m
	return c.run(c)
}

// run does what the schedule of a step asks for.
func (c *conveyor) run(work stages.Work) error {
	s, err := c.schedule(c.e.own())
	if err != nil {
		return err
	}
	waited, err := s.Run(c.e.groups.Stages, work)
	if c.waited += waited; err != nil {
		return err
	}
	if grad := c.e.model.Shared(); grad != nil {
		return c.e.groups.Ends.Total("add up the gradients of the embedding", grad)
	}
	return nil
}

func (c *conveyor) pass(s stages.Slot) *model.Pass { return c.passes[s.Chunk][s.Index] }

// Forward is that of stages.Work.
func (c *conveyor) Forward(s stages.Slot, micro int) error {
	e, p := c.e, c.pass(s)
	e.progress.Enter(backend.PhaseForward, c.step)
	b := e.micro(micro)
	if err := p.SetBatch(b); err != nil {
		return err
	}
	p.Drop(e.drawn(c.step, micro))
	p.SetLoss(e.points.loss.Func())
	loss, err := p.Loss()
	if err != nil {
		return err
	}
	c.means.add(p, loss, p.Weight()/e.weight())
	return nil
}

// Backward is that of stages.Work.
func (c *conveyor) Backward(s stages.Slot, _ int, weights bool) error {
	c.e.progress.Enter(backend.PhaseBackward, c.step)
	return c.backward(s, float32(c.e.scale()/c.e.weight()), weights)
}

func (c *conveyor) backward(s stages.Slot, scale float32, weights bool) error {
	if weights {
		return c.pass(s).Backward(scale, true)
	}
	return c.pass(s).BackwardInput(scale)
}

// Weights is that of stages.Work.
func (c *conveyor) Weights(s stages.Slot, _ int) error { return c.pass(s).BackwardWeights() }

// Stream is that of stages.Work.
func (c *conveyor) Stream(s stages.Slot) (in, out, gradient *tensor.Tensor) {
	p := c.pass(s)
	return p.Input(), p.Output(), p.Gradient()
}

// loss returns the loss of the weights on a micro batch, without patches and dropout, and the
// weight of the tokens that it is the mean of, which is 0 before the last stage.
func (c *conveyor) loss(b model.Batch) (loss, weight float64, err error) {
	for chunk := range c.passes {
		p := c.passes[chunk][0]
		p.SetLoss(c.e.points.loss.Original())
		p.KeepAll()
		if err := p.SetBatch(b); err != nil {
			return 0, 0, err
		}
	}
	err = c.plan.Forward(c.e.groups.Stages.Rank, c.e.groups.Stages, c, func(s stages.Slot) error {
		p := c.pass(s)
		value, err := p.Loss()
		if p.Heads() {
			loss, weight = value, p.Weight()
		}
		return err
	})
	return loss, weight, err
}

// numbers lists the micro batches in memory of each chunk.
func numbers(slots []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(slots), "[]")), " + ")
}

// inspectPipeline says what each stage of a pipeline has and needs.
func (t *trainer) inspectPipeline(context.Context) (string, error) {
	plan, err := t.args.plan()
	if err != nil || plan == nil || t.tc.Manager == nil {
		return "", err
	}
	ranks := max(t.tc.WorldSize, t.args.leastRanks())
	micro := t.args.microBatchesOn(ranks)
	text := plan.Name + ", " + plaintext.Quantity(micro, "micro batch", "micro batches")
	for stage := range plan.Stages {
		_, own, err := model.PartSizes(t.args.Config, model.Part{Stretches: plan.Of(stage)})
		if err != nil {
			return "", err
		}
		parts, err := t.args.memoryOf(plan, stage, t.tc.Manager, t.tc.Device, math.Inf(1), ranks)
		if err != nil {
			return "", err
		}
		s, err := plan.Schedule(stage, micro)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("; stage %d: %s, %.0f parameters, %s in flight, %s", stage, plan.Describe(stage), own, numbers(s.Slots), sysmem.Text(memory.Sum(parts).Total))
	}
	return text, nil
}
