package world

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/primus-fl/primus/ops/collective"
)

// Parallel are the parameters of training on several ranks, with Megatron's names.
type Parallel struct {
	OverlapGradReduce bool `param:"overlap_grad_reduce"`          // gradients are sent while the backward pass goes on
	Sharded           bool `param:"use_distributed_optimizer"`    // each rank has the state of the optimizer for a part of the weights
	ReduceInBF16      bool `param:"grad_reduce_in_bf16"`          // gradients are sent as bf16, and added up in f32
	OverlapGather     bool `param:"overlap_param_gather"`         // updated weights are sent while the next forward pass goes on
	TensorParallel    int  `param:"tensor_model_parallel_size"`   // ranks that share the projections of each layer and the vocabulary; 0 means 1
	SequenceParallel  bool `param:"sequence_parallel"`            // these ranks divide the sequence between the projections; nothing without them
	ExpertParallel    int  `param:"expert_model_parallel_size"`   // ranks that share the experts of each layer; 0 means 1
	PipelineParallel  int  `param:"pipeline_model_parallel_size"` // stages, each of which has some of the layers; 0 means 1
	ContextParallel   int  `param:"context_parallel_size"`        // ranks that share the tokens of each sequence; 0 means 1
	ContextComm       any  `param:"cp_comm_type"`                 // how they exchange keys and values: a name, or one for each layer; nil means p2p

	// DistributedTimeout is how many minutes a rank waits for the others in a collective; 0 means
	// 10.
	DistributedTimeout float64 `param:"distributed_timeout_minutes"`
}

// defaultTimeout is how long a rank waits for the others in a collective by default.
const defaultTimeout = 10 * time.Minute

// Timeout is how long a rank waits for the others in a collective.
func (p Parallel) Timeout() time.Duration {
	if !(p.DistributedTimeout > 0) {
		return defaultTimeout
	}
	return time.Duration(min(p.DistributedTimeout*float64(time.Minute), 1<<62))
}

// Overlaps reports whether a rank computes while it exchanges gradients or weights.
func (p Parallel) Overlaps() bool { return p.OverlapGradReduce || p.OverlapGather }

// Validate returns every fault of the configuration.
func (p Parallel) Validate() error {
	var faults []error
	if p.OverlapGather && !(p.Sharded && p.OverlapGradReduce) {
		faults = append(faults, errors.New("overlap_param_gather: given true, want false without use_distributed_optimizer and overlap_grad_reduce, as in Megatron"))
	}
	if p.TensorParallel < 0 {
		faults = append(faults, fmt.Errorf("tensor_model_parallel_size: given %d, want a number >= 1", p.TensorParallel))
	}
	if p.ExpertParallel < 0 {
		faults = append(faults, fmt.Errorf("expert_model_parallel_size: given %d, want a number >= 1", p.ExpertParallel))
	}
	if p.PipelineParallel < 0 {
		faults = append(faults, fmt.Errorf("pipeline_model_parallel_size: given %d, want a number >= 1", p.PipelineParallel))
	}
	if p.ContextParallel < 0 {
		faults = append(faults, fmt.Errorf("context_parallel_size: given %d, want a number >= 1", p.ContextParallel))
	}
	if name := p.contextComm(); p.ContextRanks() > 1 && name != CommP2P && name != CommAllGather {
		faults = append(faults, fmt.Errorf("cp_comm_type: given %v, want p2p or all_gather, the same for all layers", p.ContextComm))
	}
	return errors.Join(faults...)
}

// ContextRanks is the number of ranks that share the tokens of each sequence.
func (p Parallel) ContextRanks() int { return cmp.Or(p.ContextParallel, 1) }

// The ways in which ranks that share the tokens of sequences exchange keys and values.
const (
	CommP2P       = "p2p"
	CommAllGather = "all_gather"
)

// contextComm is cp_comm_type, "" if that is no name. Megatron's command line has another spelling
// of all_gather in its help.
func (p Parallel) contextComm() string {
	if p.ContextComm == nil {
		return CommP2P
	}
	name, _ := p.ContextComm.(string)
	list, _ := p.ContextComm.([]any)
	for i, of := range list {
		one, _ := of.(string)
		if i > 0 && one != name {
			return ""
		}
		name = one
	}
	if name == "allgather" {
		return CommAllGather
	}
	return name
}

// Rings reports whether keys and values travel round the ranks that share the tokens of sequences.
func (p Parallel) Rings() bool { return p.contextComm() == CommP2P }

// SequenceRanks is the number of ranks that work on the same sequences, without other stages.
func (p Parallel) SequenceRanks() int { return p.TensorRanks() * p.ContextRanks() }

// StageRanks is the number of stages of the pipeline.
func (p Parallel) StageRanks() int { return cmp.Or(p.PipelineParallel, 1) }

// ExpertRanks is the number of ranks that share the experts of each layer.
func (p Parallel) ExpertRanks() int { return cmp.Or(p.ExpertParallel, 1) }

// TensorRanks is the number of ranks that share the projections of each layer.
func (p Parallel) TensorRanks() int { return cmp.Or(p.TensorParallel, 1) }

// DividesModel reports whether a rank has a part of the model only.
func (p Parallel) DividesModel() bool { return p.ExpertRanks()*p.TensorRanks()*p.StageRanks() > 1 }

// Fits returns an error if a job of some ranks cannot be divided as the parameters ask for.
func (p Parallel) Fits(ranks int) error {
	if err := divides("pipeline_model_parallel_size", p.StageRanks(), ranks); err != nil {
		return err
	}
	each := ranks / p.StageRanks()
	faults := []error{p.divides("expert_model_parallel_size", p.ExpertRanks(), each)}
	if p.ContextRanks() > 1 {
		key := "context_parallel_size"
		if p.TensorRanks() > 1 {
			key += " times tensor_model_parallel_size"
		}
		return errors.Join(append(faults, p.divides(key, p.SequenceRanks(), each))...)
	}
	return errors.Join(append(faults, p.divides("tensor_model_parallel_size", p.TensorRanks(), each))...)
}

// divides is divides for the ranks of a stage.
func (p Parallel) divides(parameter string, size, ranks int) error {
	if err := divides(parameter, size, ranks); err == nil || p.StageRanks() == 1 {
		return err
	}
	return fmt.Errorf("%s: given %d, want a divisor of the number of ranks of a stage, which is %d: start a multiple of %d with --nproc, mpirun or another launcher", parameter, size, ranks, size*p.StageRanks())
}

// divides returns an error if a job of some ranks has no parts of this size.
func divides(parameter string, size, ranks int) error {
	if ranks%size == 0 {
		return nil
	}
	return fmt.Errorf("%s: given %d, want a divisor of the number of ranks, which is %d: start a multiple of %d with --nproc, mpirun or another launcher", parameter, size, ranks, size)
}

// Groups are the groups of ranks with which a rank shares a part of the work.
type Groups struct {
	Data      *World // ranks that train on other sequences
	Tensor    *World // ranks that share the projections of each layer, and work on the same tokens
	Context   *World // ranks that have the other tokens of the same sequences
	Sequences *World // ranks of both kinds
	Replicas  *World // ranks that have the same weights, and other tokens
	Experts   *World // ranks that share the experts of each layer
	Copies    *World // ranks that have the same experts
	Stages    *World // ranks that have the other stages of the pipeline, one each
	Ends      *World // those of them that have the first and the last stage; nil elsewhere, and without a pipeline
}

// Planned returns the groups of the first rank in a job of so many that has not begun.
func (p Parallel) Planned(ranks int) Groups {
	return (&World{Group: collective.Group{Ranks: ranks}}).Divide(p)
}

// Divide returns the groups of a rank in a job that is divided as the parameters ask for. As in
// Megatron, neighbours share projections or experts, the ranks that share the tokens of a sequence
// follow each other apart from these, and those of a stage follow each other.
func (w *World) Divide(p Parallel) Groups {
	t, n, stages, both := p.TensorRanks(), p.ExpertRanks(), p.StageRanks(), p.SequenceRanks()
	each := w.Ranks / stages
	stage, rank := w.Rank/each, w.Rank%each
	first := stage * each
	g := Groups{
		Data:      w.part(rank/both, each/both, first+rank%both, both),
		Tensor:    w.part(rank%t, t, first+rank/t*t, 1),
		Context:   w.part(rank%both/t, both/t, first+rank/both*both+rank%t, t),
		Sequences: w.part(rank%both, both, first+rank/both*both, 1),
		Replicas:  w.part(rank/t, each/t, first+rank%t, t),
		Experts:   w.part(rank%n, n, first+rank/n*n, 1),
		Copies:    w.part(rank/n, each/n, first+rank%n, n),
		Stages:    w.part(stage, stages, rank, each),
	}
	if last := stages - 1; last > 0 && (stage == 0 || stage == last) {
		g.Ends = w.part(stage/last, 2, rank, last*each)
	}
	return g
}

// part returns the World of some ranks of the job, which use the queue of the whole.
func (w *World) part(rank, ranks, first, stride int) *World {
	if ranks == w.Ranks {
		return w
	}
	part := *w
	part.Group = collective.Group{Rank: rank, Ranks: ranks, First: first, Stride: stride}
	return &part
}
