package native

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/tensor"
)

// checkWorld returns an error if this is one of several processes that cannot train together.
// WORLD_SIZE=1 declares the processes of a launcher to be separate runs.
func checkWorld(tc *backend.TrainContext) error {
	const remedy = "start the processes with mpirun or mpiexec"
	if tc.LocalWorldSize > tc.WorldSize {
		return fmt.Errorf("this is one of %d processes on this machine (LOCAL_WORLD_SIZE) in a job of %d: %s, or unset this variable", tc.LocalWorldSize, tc.WorldSize, remedy)
	}
	if _, declared := tc.Environ.Lookup("WORLD_SIZE"); declared || tc.WorldSize > 1 {
		return nil
	}
	const mvapich = "MV2_COMM_WORLD_SIZE"
	text, _ := tc.Environ.Lookup(mvapich)
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 1 {
		return fmt.Errorf("mpirun of MVAPICH2 has started %d processes (%s), and primus does not use its library: %s of Open MPI or MPICH, or set WORLD_SIZE=1 and another exp_name for each, if they are runs of their own",
			n, mvapich, remedy)
	}
	return nil
}

// newWorld returns the job that the run belongs to. A micro batch that is larger than the part of a
// rank becomes smaller.
func newWorld(tc *backend.TrainContext, a *Args) (*world.World, error) {
	if err := checkWorld(tc); err != nil {
		return nil, err
	}
	if err := a.Fits(tc.WorldSize); tc.Manager != nil && err != nil {
		return nil, describe(tc, err)
	}
	micro, err := a.microBatchOn(tc.WorldSize)
	if err != nil {
		return nil, describe(tc, err)
	}
	if micro < a.MicroBatchSize && tc.Rank == 0 {
		tc.Log.Info(fmt.Sprintf("each rank computes %d sequences at a time instead of micro_batch_size %d, because its part of global_batch_size %d is no larger", micro, a.MicroBatchSize, a.GlobalBatchSize))
	}
	if a.stage == stageDPO && micro%2 != 0 {
		return nil, describe(tc, fmt.Errorf("global_batch_size: given %d, of which a rank computes %d at a time, want an even number of these: a pair takes two sequences", a.GlobalBatchSize, micro))
	}
	a.MicroBatchSize = micro
	if err := a.checkMicroBatches(tc); err != nil {
		return nil, describe(tc, err)
	}
	if tc.Manager == nil { // the run is only planned
		return world.Single(), nil
	}
	return world.New(tc.Manager, collective.Group{Rank: tc.Rank, Ranks: tc.WorldSize}), nil
}

// microBatchOn returns the micro batch of each rank, which may be smaller than micro_batch_size, or
// why a job of some ranks cannot train the batch.
func (a *Args) microBatchOn(ranks int) (int, error) {
	ranks = max(ranks/a.SequenceRanks()/a.StageRanks(), 1) // with sequences of their own
	micro := a.MicroBatchSize
	if share := a.GlobalBatchSize / ranks; share < micro && share > 0 && a.GlobalBatchSize%ranks == 0 {
		micro = share
	}
	if each := micro * ranks; a.GlobalBatchSize%each != 0 {
		return 0, fmt.Errorf("global_batch_size: given %d, want a multiple of %d, which is micro_batch_size %d on %d ranks", a.GlobalBatchSize, each, micro, ranks)
	}
	return micro, a.RampupBatchSize.Validate(a.GlobalBatchSize, micro*ranks)
}

// Fits returns a function that says why a number of ranks cannot train a module together, nil if
// they can as far as its batch and its parallel groups go. Ranks are started before patches change
// arguments, so it reads the parameters of the module. Each rank compares its arguments with the
// number of ranks again, and the run ends if a patch has made these not fit.
func Fits(m *config.Module) (func(ranks int) error, error) {
	tc, _, err := standalone(m)
	if err != nil {
		return nil, err
	}
	a := &Args{}
	if _, err := document.Decode(tc.Args.Map(), a); err != nil {
		return nil, err
	}
	return func(ranks int) error {
		if a.MicroBatchSize < 1 || a.GlobalBatchSize < 1 || a.Parallel.Validate() != nil {
			return nil // what is wrong with these is not their number
		}
		_, err := a.microBatchOn(ranks)
		if err = errors.Join(a.Fits(ranks), err); err != nil {
			return describe(tc, err)
		}
		return nil
	}, nil
}

// claim returns what has to be the same on all ranks, with the data once they are loaded.
func (t *trainer) claim() world.Claim {
	c := world.Claim{Version: buildinfo.Read().Version, Program: buildinfo.Checksum(), Manifest: t.tc.Manager.Manifest()}
	if t.data != nil {
		c.Data = t.data.Fingerprint()
	}
	c.Parameters = map[string]string{
		"eval_interval": strconv.Itoa(t.args.EvalInterval), "eval_iters": strconv.Itoa(t.args.EvalIters), "final_eval_windows": strconv.Itoa(t.args.FinalWindows),
		"save_interval": strconv.Itoa(t.args.SaveInterval), "exit_interval": strconv.Itoa(t.args.ExitInterval),
		"async_save": strconv.FormatBool(t.args.AsyncSave),
	}
	for name, v := range t.compared() {
		c.Parameters[strings.TrimPrefix(name, patchPrefix)] = fmt.Sprint(v)
	}
	return c
}

// share gives all ranks the state, the weights and the moments of the first one. back says that the
// run goes back to a checkpoint.
func (t *trainer) share(back bool) error {
	if t.world.Alone() {
		return nil
	}
	own, err := json.Marshal(t.state)
	if err != nil {
		return fmt.Errorf("share the state: %w", err)
	}
	if own, err = t.world.Share("share the state", own); err != nil {
		return err
	}
	if err := json.Unmarshal(own, &t.state); err != nil {
		return fmt.Errorf("share the state: %w", err)
	}
	if !t.world.Leads() {
		t.sampler.Seek(t.state.Position)
		t.savedStep = t.state.Step
	}
	var tensors []*tensor.Tensor
	for _, scale := range t.model.Scales() {
		tensors = append(tensors, scale.Tensor)
	}
	if !t.divided() {
		tensors = append(tensors, t.model.Flats()[0].Values)
		if (t.state.Step > 0 || back) && t.shard == nil {
			if t.average != nil {
				tensors = append(tensors, t.average.Means()...)
			}
			for _, s := range t.optimizer.State() {
				for _, own := range s.Tensors {
					if own != nil {
						tensors = append(tensors, own)
					}
				}
			}
		}
	}
	if err := t.world.Copy("share the weights", tensors...); err != nil {
		return err
	}
	if t.divided() && t.args.LoadHF != "" && !back && (t.state.Step == 0 || t.args.Adapts()) { // each rank reads its part
		if err := t.world.Agree("load the weights", t.loadWeights()); err != nil {
			return err
		}
	}
	if t.shard == nil || t.state.Step == 0 && !back {
		return nil
	}
	return t.loadShards()
}

// seeTogether finds out whether all ranks can write checkpoints together: if they see a file that
// the first one makes.
func (t *trainer) seeTogether() error {
	if t.world.Alone() {
		t.together = true
		return nil
	}
	path := ""
	if t.world.Leads() {
		path = filepath.Join(t.store.Dir(), "ranks.tmp")
		if err := durable.WriteFile(path, func(io.Writer) error { return nil }); err != nil {
			return fmt.Errorf("checkpoint: nothing can be saved in %s: %w", t.store.Dir(), durable.Explain(err))
		}
		defer os.Remove(path)
	}
	shared, err := t.world.Share("find the directory of checkpoints", []byte(path))
	if err != nil {
		return err
	}
	f, err := durable.OpenWrite(string(shared))
	blind := 0.0
	if err != nil {
		blind = 1
	} else if err := f.Close(); err != nil {
		return err
	}
	if err := t.world.Sum("find the directory of checkpoints", &blind); err != nil {
		return err
	}
	if t.together = blind == 0; !t.together && t.shard != nil {
		return fmt.Errorf("save: %.0f of %d ranks cannot write to %s, where all of them save what only they have: give save a directory of a file system that they share", blind, t.world.Ranks, filepath.Dir(string(shared)))
	}
	return nil
}

// compareTimes finds out how the ranks spent the time of the steps.
func (t *trainer) compareTimes() error {
	if t.world.Alone() {
		return nil
	}
	all, err := t.world.Gather("compare the times of the ranks", binary.LittleEndian.AppendUint64(nil, uint64(t.computed)))
	if err != nil {
		return err
	}
	job := &backend.Job{Ranks: len(all), Traffic: traffic(t.world.Traffic())}
	sum, longest := 0.0, 0.0
	for rank, text := range all {
		computed := time.Duration(binary.LittleEndian.Uint64(text)).Seconds()
		sum += computed
		if computed > longest {
			job.Slowest, longest = rank, computed
		}
	}
	if sum > 0 {
		job.Behind = longest*float64(len(all))/sum - 1
		job.Waiting = t.exchanged.Seconds() / (t.computed + t.exchanged).Seconds()
		if spent, waited := t.links.times(); spent > 0 {
			job.Hidden = max(0, 1-waited.Seconds()/spent.Seconds())
		}
	}
	t.result.Job = job
	return nil
}

// rankTimes returns how the ranks spent a step.
func rankTimes(seconds []float64, sent []world.Traffic) *backend.RankTimes {
	r := &backend.RankTimes{Traffic: traffic(sent)}
	for _, s := range seconds {
		r.Computed = append(r.Computed, time.Duration(s*float64(time.Second)))
	}
	return r
}

func traffic(sent []world.Traffic) []backend.Traffic {
	all := make([]backend.Traffic, len(sent))
	for i, t := range sent {
		all[i] = backend.Traffic(t)
	}
	return all
}

// checkPoints returns an error if a patch changes what several ranks cannot do together.
func (t *trainer) checkPoints() error {
	if t.divided() && t.args.TensorRanks() > 1 && t.points.loss.Patched() {
		return fmt.Errorf("a patch changes %s, and sees the logits of a part of the vocabulary only: train without tensor_model_parallel_size, or without it (primus patches plan names it)", LossPoint.Name())
	}
	if t.stage() && (t.points.forwardStep.Patched() || t.points.backwardStep.Patched()) {
		return fmt.Errorf("a patch changes %s or %s, and stages of a pipeline have no such steps: train without pipeline_model_parallel_size, or without it (primus patches plan names it)", ForwardStepPoint.Name(), BackwardStepPoint.Name())
	}
	if t.world.Alone() || !t.points.backwardStep.Patched() {
		return nil
	}
	return fmt.Errorf("a patch changes %s, and sees the gradients of one rank only: train on one rank, or without it (primus patches plan names it)", BackwardStepPoint.Name())
}

// ending returns the context whose end a step of all ranks takes part in. One rank alone gives a
// step up when late ends; several only agree that it is the last one.
func (t *trainer) ending(ctx, late context.Context) context.Context {
	if t.world.Alone() {
		return late
	}
	return ctx
}

// stopping reports whether training should end: when ctx has ended or, in a job of several ranks,
// when it had ended on one of them in the last step.
func (t *trainer) stopping(ctx context.Context) bool {
	if t.world.Alone() {
		return ctx.Err() != nil
	}
	return t.stop
}

// divided reports whether this rank has a part of the model only.
func (e *engine) divided() bool { return !e.world.Alone() && e.args.DividesModel() }

// together reports whether the passes of this rank need other ranks.
func (e *engine) together() bool {
	return e.divided() || !e.world.Alone() && e.args.ContextRanks() > 1
}

// stage reports whether this rank has a stage of a pipeline.
func (e *engine) stage() bool { return e.divided() && e.args.StageRanks() > 1 }

// part finds out with whom this rank works, and returns the part of the model that it has.
func (e *engine) part() (model.Part, error) {
	p := world.Parallel{}
	if e.together() {
		p = e.args.Parallel
	}
	e.groups = e.world.Divide(p)
	part := model.PartOf(e.groups, p)
	if !e.stage() {
		return part, nil
	}
	plan, err := e.args.plan()
	if err == nil {
		part.Stretches = plan.Of(e.groups.Stages.Rank)
	}
	return part, err
}

// connect makes the exchange of gradients with other ranks, and finds out which weights this rank
// updates and saves.
func (e *engine) connect() error {
	if e.world.Alone() {
		return nil
	}
	if e.args.Sharded || e.divided() {
		e.shard = &shards.Shard{}
	}
	if e.divided() {
		e.weights = &shards.Shard{}
	}
	for i, f := range e.model.Flats() {
		w := []*world.World{e.groups.Replicas, e.groups.Copies}[i]
		if e.weights != nil {
			for _, p := range f.Params {
				e.weights.Add(p, optim.Param{Value: p.Value}, w.Leads() && e.writes(p))
			}
		}
		if err := e.link(f, w); err != nil {
			return err
		}
	}
	return nil
}

// writes reports whether this rank writes what it has of a weight, of those that share a layer.
func (e *engine) writes(p *model.Param) bool {
	return !p.Twin && (p.Shared() || !e.divided() || e.args.TensorRanks() == 1 || e.groups.Tensor.Leads())
}

// link makes the exchange of weights among the ranks that have them.
func (e *engine) link(f model.Flat, w *world.World) error {
	sharded := e.args.Sharded && !w.Alone()
	if e.shard != nil && !sharded {
		for _, p := range f.Params {
			e.shard.Add(p, e.whole(p), w.Leads() && e.writes(p))
		}
	}
	if w.Alone() {
		return nil
	}
	x, err := w.NewExchange(f.Values, f.Grads, f.Used, e.args.Parallel)
	if err != nil {
		return err
	}
	if sharded {
		e.shard.Cut(f, x.Parts(), e.whole, e.writes)
	}
	e.links.add(f, x)
	return nil
}

// whole returns a weight with what the optimizer should know of it.
func (e *engine) whole(p *model.Param) optim.Param {
	own := optim.Param{Value: p.Value, Grad: p.Grad, Decay: p.Decay, LRScale: e.points.lrScale.Func()(p.AtFirst())}
	own.Matrices, own.InOut = p.Matrices(e.args.SplitQKV)
	if p.OfLayer() && p.Shared() && !p.Apart {
		ranks := e.groups.Tensor
		own.Divided = &optim.Divided{Ranks: ranks.Ranks, Columns: p.Slice.Cols != nil, Sum: func(t *tensor.Tensor) error {
			return ranks.Total("orthogonalise a matrix", t)
		}}
	}
	return own
}

// updated returns the weights that this rank updates.
func (e *engine) updated() []optim.Param {
	if e.shard != nil {
		return e.shard.Params
	}
	var params []optim.Param
	for _, p := range e.model.Trained() {
		params = append(params, e.whole(p))
	}
	return params
}

// publish sends the weights that this rank has updated to the others, and receives theirs.
func (e *engine) publish() error {
	if !e.args.Sharded {
		return nil
	}
	e.links.gather()
	if e.args.OverlapGather {
		return nil
	}
	return e.gathered()
}

// gathered returns when all weights are those of the last step.
func (e *engine) gathered() error { return e.sent(e.links.need(e.args.NumLayers + 1)) }

// waited is the time for which this rank has waited for gradients and weights.
func (e *engine) waited() time.Duration {
	_, waited := e.links.times()
	if e.conveyor != nil {
		waited += e.conveyor.waited
	}
	return waited
}

// outline returns the weights of all ranks.
func (e *engine) outline() (*model.Model, error) {
	if !e.divided() {
		return e.model, nil
	}
	return model.Outline(e.args.Config)
}

// spread returns a file of tensors of which this rank has pieces, at the places of a model.
func (e *engine) spread(name string, s *shards.Shard, places func(*model.Model) []model.Place, states []optim.State, metadata map[string]string) (shards.File, error) {
	all, err := e.outline()
	if err != nil {
		return shards.File{}, err
	}
	if e.stage() {
		if err := s.Compare(e.world, states); err != nil {
			return shards.File{}, err
		}
	}
	return s.Spread(name, places(all), places(e.model), states, metadata)
}

// merged returns the weights of this rank with their adapters added, as pieces, and a function that
// returns their memory.
func (e *engine) merged() (*shards.Shard, func() error, error) {
	values, release, err := e.model.MergedValues(e.manager)
	if err != nil {
		return nil, nil, err
	}
	all := &shards.Shard{}
	for i, p := range e.model.Params() {
		all.Add(p, optim.Param{Value: values[i]}, e.groups.Replicas.Leads() && e.writes(p))
	}
	return all, release, nil
}

// loadShards loads what each rank has of the weights, where they are divided, and of the state of
// the optimizer.
func (t *trainer) loadShards() error {
	var err error
	if t.weights != nil {
		file, places := weightsFile, (*model.Model).Places
		if t.args.Adapts() {
			file, places = weights.WeightsFile, weights.Places
		}
		err = t.loadShard(file, t.weights, places, t.weights.Values())
	}
	if err == nil && t.average != nil {
		err = t.loadShard(averageFile, t.shard, (*model.Model).Places, t.average.State())
	}
	if err == nil {
		err = t.loadShard(optimizerFile, t.shard, (*model.Model).Places, t.optimizer.State())
	}
	if _, lost := errors.AsType[*world.Error](err); lost {
		return err
	}
	if err == nil {
		err = t.finiteWeights()
	}
	return t.world.Agree("check what was loaded", err)
}

func (t *trainer) loadShard(name string, s *shards.Shard, places func(*model.Model) []model.Place, states []optim.State) error {
	all, err := t.outline()
	if err != nil {
		return err
	}
	if t.stage() {
		if err := s.Compare(t.world, states); err != nil {
			return err
		}
	}
	var file *safetensors.File
	if t.world.Leads() {
		if file, err = t.from.Safetensors(context.Background(), name); err != nil {
			return err
		}
		defer file.Close()
	}
	return s.Load(t.world, file, places(all), places(t.model), states)
}

// counted returns the gradients that this rank counts for the norm of all: each is counted by one
// rank.
func (e *engine) counted() []*tensor.Tensor {
	var grads []*tensor.Tensor
	for i, p := range e.shard.Params {
		if e.shard.Writes(i) {
			grads = append(grads, p.Grad)
		}
	}
	return grads
}
