package native

import (
	"fmt"
	"math"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// ProjectMemory returns the memory that training a module needs before its first step, without the
// scratch memory of kernels, and warnings about its parameters. The activations are left out when
// the rest is more than limit, and all but the batch for a device that does not describe itself.
func ProjectMemory(m *config.Module, manager *opmanager.Manager, dev device.Backend, limit float64) ([]memory.Part, []document.Warning, error) {
	tc, warnings, err := standalone(m)
	if err != nil {
		return nil, warnings, err
	}
	args, err := newArgs(tc)
	if err != nil {
		return nil, warnings, err
	}
	parts, err := args.memoryParts(manager, dev, limit, max(tc.WorldSize, 1))
	return parts, warnings, err
}

// checkDevice returns an error unless the run has the device that it asks for, and that can do what
// is asked of it.
func (a *Args) checkDevice(tc *backend.TrainContext) error {
	if tc.Device == nil {
		return nil
	}
	at, err := tc.Device.Device()
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	name, _, _ := strings.Cut(a.Device, ":")
	switch {
	case name != "" && !strings.EqualFold(strings.TrimSpace(name), tc.Device.Name()):
		return fmt.Errorf("device: given %s, but this program trains on %v", a.Device, at)
	case at.Type != device.TypeCPU && tc.WorldSize > 1 && (a.Sharded || a.DividesModel() || a.ContextRanks() > 1):
		return fmt.Errorf("device: given %v in a run of %d ranks with use_distributed_optimizer, tensor_model_parallel_size, pipeline_model_parallel_size, expert_model_parallel_size or context_parallel_size, want the CPU or none of these: what they exchange lies in host memory", at, tc.WorldSize)
	}
	return nil
}

// memoryParts counts what is allocated before the first step, without the scratch memory of
// kernels, on a device that is described or the host. Of the stages of a pipeline it counts the one
// that needs most.
func (a *Args) memoryParts(mgr *opmanager.Manager, dev device.Backend, limit float64, ranks int) ([]memory.Part, error) {
	plan, err := a.plan()
	if err != nil || plan == nil {
		return a.memoryOf(nil, 0, mgr, dev, limit, ranks)
	}
	var most []memory.Part
	for stage := range plan.Stages {
		parts, err := a.memoryOf(plan, stage, mgr, dev, limit, ranks)
		if err != nil {
			return nil, err
		}
		if most == nil || memory.Sum(parts).Total > memory.Sum(most).Total {
			most = parts
		}
	}
	return most, nil
}

// memoryOf is memoryParts for a stage, or for a model without a plan of stages.
func (a *Args) memoryOf(plan *stages.Plan, stage int, mgr *opmanager.Manager, dev device.Backend, limit float64, ranks int) ([]memory.Part, error) {
	at, err := dev.Device()
	if err != nil {
		return nil, err
	}
	parts := []memory.Part{{
		What: "the batch", Bytes: 4 * float64(a.GlobalBatchSize) * float64(a.SeqLength+1), Formula: "4 · global_batch_size · (seq_length + 1)", Keys: "global_batch_size",
	}}
	if at.Type != device.TypeCPU && !memory.Known(dev) {
		return parts, nil
	}
	groups := a.Parallel.Planned(max(ranks, a.leastRanks()))
	part := model.PartOf(groups, a.Parallel)
	if plan != nil {
		part.Stretches = plan.Of(stage)
	}
	weights, trained := a.WeightBytes(), a.TrainedParameters()
	moments, formula := a.moments()
	if a.DividesModel() {
		held, own, err := model.PartSizes(a.Config, part)
		if err != nil {
			return nil, err
		}
		moments *= own / trained
		weights, trained = 4*(held+own), own
		formula += ", of the part of a rank"
	}
	if a.EMADecay > 0 {
		moments += trained
		formula += " + 4 · those that are trained, for the average"
	}
	state := memory.Part{
		What: "weights with gradients and moments", Bytes: weights + 4*moments, Formula: formula, Keys: "num_layers, hidden_size, vocab_size or num_experts",
	}
	if n := groups.Replicas.Ranks; a.Sharded && n > 1 { // gradients are added up apart
		state.Bytes = weights + 4*(trained+moments)/float64(n)
		state.Formula = fmt.Sprintf("4 · parameters + 4 · those that are trained + 4 / %d ranks · (those that are trained and moments)", n)
	}
	parts = append(parts, state)
	if a.stage == stageDPO {
		parts = append(parts, memory.Part{
			What: "weights to compare with", Bytes: 4 * float64(a.NumParameters()), Formula: "4 · parameters", Keys: "num_layers, hidden_size or vocab_size",
		})
	}
	if memory.Sum(parts).Total > limit { // counting the rest may itself take too much memory
		return parts, nil
	}
	if plan != nil {
		s, err := plan.Schedule(stage, a.microBatchesOn(ranks))
		if err != nil {
			return nil, err
		}
		activations, err := model.StageBytes(a.built(at.Type != device.TypeCPU), part, s.Slots, plan.Apart, mgr, a.MicroBatchSize)
		return append(parts, memory.Part{
			What: "activations", Bytes: activations, Formula: fmt.Sprintf("what the layers of stage %d keep of %s micro batches of micro_batch_size · seq_length tokens, by their impls", stage, numbers(s.Slots)), Keys: "micro_batch_size, seq_length or num_layers",
		}), err
	}
	activations, err := model.ActivationBytes(a.built(at.Type != device.TypeCPU), part, mgr, a.MicroBatchSize)
	if err != nil {
		return nil, err
	}
	return append(parts, memory.Part{
		What: "activations", Bytes: activations, Formula: "what the layers keep of micro_batch_size · seq_length tokens, by their impls", Keys: "micro_batch_size, seq_length or num_layers",
	}), nil
}

// moments returns the number of elements that the optimizer keeps, and the formula of the memory of
// weights, gradients and these.
func (a *Args) moments() (n float64, formula string) {
	switch a.Optimizer {
	case optim.SGD:
		return a.TrainedParameters(), "4 · parameters + 4 · 2 · those that are trained"
	case optim.Muon:
		tables := float64(a.VocabSize) * float64(a.HiddenSize)
		if a.Untie {
			tables *= 2
		}
		return a.TrainedParameters() + tables, "4 · parameters + 4 · 2 · those that are trained + 4 · those of embeddings and output layer"
	default:
		return 2 * a.TrainedParameters(), "4 · parameters + 4 · 3 · those that are trained"
	}
}

// checkMemory describes the memory that training needs and returns an error if that is more than
// there is.
func (a *Args) checkMemory(mgr *opmanager.Manager, dev device.Backend, ranks int) (string, error) {
	limit, owner, err := memory.Limit(dev)
	if err != nil {
		limit = sysmem.Limit{Bytes: math.MaxUint64, Source: "a system that does not tell"}
	}
	parts, err := a.memoryParts(mgr, dev, float64(limit.Bytes), ranks)
	if err != nil {
		return "", err
	}
	needs := memory.Sum(parts)
	most := fmt.Sprintf("%s (%s)", sysmem.Text(float64(limit.Bytes)), limit.Source)
	if needs.Total > float64(limit.Bytes) {
		return "", fmt.Errorf("memory: training takes at least %s, and %s %s: lower %s", needs.Text, owner, most, needs.Largest.Keys)
	}
	return fmt.Sprintf("%s, of %s", needs.Text, most), nil
}
