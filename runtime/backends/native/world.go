package native

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/runtime/backends/native/optim"
	"github.com/primus-fl/primus/runtime/backends/native/shards"
	"github.com/primus-fl/primus/runtime/backends/native/world"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/safetensors"
)

// otherLaunchers are variables in which launchers pass the number of processes that they start
// without a library for collectives.
var otherLaunchers = []struct{ name, launcher string }{
	{"SLURM_STEP_NUM_TASKS", "srun"},
	{"MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH2"},
}

// checkWorld returns an error if this is one of several processes that cannot train together.
// WORLD_SIZE=1 declares the processes of a launcher to be separate runs.
func checkWorld(tc *backend.TrainContext) error {
	const remedy = "start the processes with mpirun or mpiexec"
	if tc.LocalWorldSize > tc.WorldSize {
		return fmt.Errorf("this is one of %d processes on this machine (LOCAL_WORLD_SIZE) in a job of %d: %s, or unset this variable", tc.LocalWorldSize, tc.WorldSize, remedy)
	}
	if _, told := tc.Environ.Lookup("WORLD_SIZE"); told || tc.WorldSize > 1 {
		return nil
	}
	for _, v := range otherLaunchers {
		text, _ := tc.Environ.Lookup(v.name)
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 1 {
			return fmt.Errorf("%s has started %d processes (%s), and it does not connect them: %s, or set WORLD_SIZE=1 and another exp_name for each, if they are runs of their own",
				v.launcher, n, v.name, remedy)
		}
	}
	return nil
}

// newWorld returns the job that the run belongs to. A micro batch that is larger than the part of a
// rank becomes smaller.
func newWorld(tc *backend.TrainContext, a *Args) (*world.World, error) {
	if err := checkWorld(tc); err != nil {
		return nil, err
	}
	if share := a.GlobalBatchSize / tc.WorldSize; share < a.MicroBatchSize && share > 0 && a.GlobalBatchSize%tc.WorldSize == 0 {
		if tc.Rank == 0 {
			tc.Log.Warn(fmt.Sprintf("micro_batch_size is %d in place of %d: global_batch_size %d on %d ranks leaves no more", share, a.MicroBatchSize, a.GlobalBatchSize, tc.WorldSize))
		}
		a.MicroBatchSize = share
	}
	if each := a.MicroBatchSize * tc.WorldSize; a.GlobalBatchSize%each != 0 {
		return nil, describe(tc, fmt.Errorf("global_batch_size: got %d, want a multiple of %d, which is micro_batch_size %d on %d ranks", a.GlobalBatchSize, each, a.MicroBatchSize, tc.WorldSize))
	}
	if err := a.RampupBatchSize.Validate(a.GlobalBatchSize, a.MicroBatchSize*tc.WorldSize); err != nil {
		return nil, describe(tc, err)
	}
	g := collective.Group{Rank: tc.Rank, Ranks: tc.WorldSize}
	if tc.Manager == nil { // the run is only planned
		g = collective.Group{Ranks: 1}
	}
	return world.New(tc.Manager, g), nil
}

// claim is what has to be the same on all ranks.
type claim struct {
	Version    string             `json:"version"`
	Program    string             `json:"program"` // checksum of its file
	Data       string             `json:"data"`
	Parameters map[string]any     `json:"parameters"`
	Manifest   opmanager.Manifest `json:"manifest"`
}

func (t *trainer) claim() claim {
	c := claim{Version: buildinfo.Read().Version, Program: programChecksum(), Data: t.data.Fingerprint(), Parameters: t.compared(), Manifest: t.tc.Manager.Manifest()}
	for key, v := range map[string]int{
		"eval_interval": t.args.EvalInterval, "eval_iters": t.args.EvalIters, "final_eval_windows": t.args.FinalWindows,
		"save_interval": t.args.SaveInterval,
	} {
		c.Parameters[key] = float64(v)
	}
	return c
}

// programChecksum returns the SHA-256 of the file of this program, as far as it tells two builds
// apart; where it cannot be read, why.
func programChecksum() string {
	f, err := os.Open("/proc/self/exe") // also when the file has been replaced
	if err != nil {
		var name string
		if name, err = os.Executable(); err == nil {
			f, err = os.Open(name)
		}
	}
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// agree returns an error if a rank of the job would compute otherwise than the first one.
func (t *trainer) agree() error {
	if t.world.Alone() {
		return nil
	}
	own, err := json.Marshal(t.claim())
	if err != nil {
		return fmt.Errorf("compare the ranks: %w", err)
	}
	all, err := t.world.Gather("compare the ranks", own)
	if err != nil {
		return fmt.Errorf("rank %d of %d cannot reach the others: %w; start all ranks with mpirun of Open MPI or mpiexec of MPICH", t.world.Rank, t.world.Ranks, err)
	}
	claims := make([]claim, len(all))
	for i, text := range all {
		if err := json.Unmarshal(text, &claims[i]); err != nil {
			return fmt.Errorf("compare the ranks: rank %d: %w", i, err)
		}
	}
	var faults []error
	for i, c := range claims[1:] {
		if err := claims[0].check(c); err != nil {
			faults = append(faults, fmt.Errorf("rank %d differs from rank 0, so nothing was trained: %w", i+1, err))
		}
	}
	if faults != nil {
		return &world.CommonError{Err: errors.Join(faults...)}
	}
	return nil
}

// check returns an error that joins every difference of another rank from this one.
func (c claim) check(other claim) error {
	var faults []error
	differs := func(what string, first, second any) {
		if first != second {
			faults = append(faults, fmt.Errorf("%s: got %v, want %v as on rank 0", what, shown(second), shown(first)))
		}
	}
	if c.Version != other.Version {
		differs("version of primus", c.Version, other.Version)
	} else {
		differs("program (SHA-256 of its file)", c.Program, other.Program)
	}
	differs("fingerprint of the data", c.Data, other.Data)
	names := maps.Clone(c.Parameters)
	maps.Copy(names, other.Parameters)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differs(strings.TrimPrefix(name, patchPrefix), c.Parameters[name], other.Parameters[name])
	}
	return errors.Join(append(faults, c.Manifest.Check(other.Manifest))...)
}

// share gives all ranks the state, the weights and the moments of the first one.
func (t *trainer) share() error {
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
	tensors := []*tensor.Tensor{t.model.Flat().Values}
	if t.state.Step > 0 && t.shard == nil {
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
	if !t.world.Leads() {
		t.sampler.Seek(t.state.Position)
		t.savedStep = t.state.Step
	}
	if err := t.world.Copy("share the weights", tensors...); err != nil || t.shard == nil || t.state.Step == 0 {
		return err
	}
	return t.loadShards()
}

// loadShards loads the part of the state of the optimizer that each rank has.
func (t *trainer) loadShards() error {
	var file *safetensors.File
	if t.world.Leads() {
		var err error
		if file, err = t.from.Safetensors(optimizerFile); err != nil {
			return err
		}
		defer file.Close()
	}
	err := t.shard.Load(t.world, file, t.model, t.optimizer.State())
	if _, lost := errors.AsType[*world.Error](err); lost {
		return err
	}
	if err == nil {
		err = t.finiteWeights()
	}
	return t.world.Agree("check the state of the optimizer", err)
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
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return fmt.Errorf("checkpoint: nothing can be saved in %s: %w", t.store.Dir(), durable.Explain(err))
		}
		defer os.Remove(path)
	}
	shared, err := t.world.Share("find the directory of checkpoints", []byte(path))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(string(shared), os.O_WRONLY, 0)
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
		return fmt.Errorf("use_distributed_optimizer: %.0f of %d ranks cannot write to %s, where all of them save what they have of the optimizer: give save a directory of a file system that they share", blind, t.world.Ranks, filepath.Dir(string(shared)))
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
		if spent, waited := t.exchange.Times(); spent > 0 {
			job.Hidden = max(0, 1-waited.Seconds()/spent.Seconds())
		}
	}
	t.job = job
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

// connect makes the exchange of gradients with other ranks.
func (e *engine) connect() (err error) {
	if e.world.Alone() {
		return nil
	}
	f := e.model.Flat()
	if e.exchange, err = e.world.NewExchange(f.Values, f.Grads, f.Used, e.args.Sharded); err != nil {
		return err
	}
	if e.args.Sharded {
		e.shard = shards.New(f, e.exchange.Parts(), e.whole)
	}
	e.pass.Watch(model.Watch{
		Needs: func(depth int) error { return e.exchange.Need(f.Final(depth + 1)) },
		Final: func(depth int) {
			if e.early {
				e.exchange.Send(f.Final(depth))
			}
		},
	})
	return nil
}

// whole returns a weight with what the optimizer should know of it.
func (e *engine) whole(p *model.Param) optim.Param {
	return optim.Param{Value: p.Value, Grad: p.Grad, Decay: p.Decay, LRScale: e.points.lrScale.Func()(p)}
}

// updated returns the weights that this rank updates.
func (e *engine) updated() []optim.Param {
	if e.shard != nil {
		return e.shard.Params
	}
	var params []optim.Param
	for _, p := range e.model.Trained() {
		own := e.whole(p)
		own.Matrices, own.InOut = p.Matrices(e.args.SplitQKV)
		params = append(params, own)
	}
	return params
}

// publish sends the weights that this rank has updated to the others, and receives theirs.
func (e *engine) publish() error {
	if e.shard == nil {
		return nil
	}
	e.exchange.Gather()
	if e.args.OverlapGather {
		return nil
	}
	return e.gathered()
}

// gathered returns when all weights are those of the last step.
func (e *engine) gathered() error {
	if e.shard == nil {
		return nil
	}
	return e.sent(e.exchange.Need(0))
}

// exchanging reports whether gradients of the step were sent.
func (e *engine) exchanging() bool { return e.exchange != nil && e.exchange.Begun() }

// waited is the time for which this rank has waited for gradients and weights.
func (e *engine) waited() time.Duration {
	if e.exchange == nil {
		return 0
	}
	_, waited := e.exchange.Times()
	return waited
}
