package backend

import (
	"time"

	"github.com/primus-fl/primus/opmanager"
)

// Observer is told what happens in a run. Its methods return soon.
type Observer interface {
	RunStarted(Run)
	StepDone(Step)
	RunEnded(Result)
}

// Observers tells several observers in turn.
type Observers []Observer

// RunStarted tells every observer.
func (o Observers) RunStarted(r Run) {
	for _, each := range o {
		each.RunStarted(r)
	}
}

// StepDone tells every observer.
func (o Observers) StepDone(s Step) {
	for _, each := range o {
		each.StepDone(s)
	}
}

// RunEnded tells every observer.
func (o Observers) RunEnded(r Result) {
	for _, each := range o {
		each.RunEnded(r)
	}
}

// CheckpointObserver is an Observer that is also told of each checkpoint that is complete.
type CheckpointObserver interface{ CheckpointSaved(step int) }

// CheckpointSaved tells every observer that wants to know.
func (o Observers) CheckpointSaved(step int) {
	for _, each := range o {
		if c, ok := each.(CheckpointObserver); ok {
			c.CheckpointSaved(step)
		}
	}
}

// PatchObserver is an Observer that is also told which patches were applied in a phase.
type PatchObserver interface {
	PatchesApplied(phase string, ids []string)
}

// PatchesApplied tells every observer that wants to know.
func (o Observers) PatchesApplied(phase string, ids []string) {
	for _, each := range o {
		if p, ok := each.(PatchObserver); ok {
			p.PatchesApplied(phase, ids)
		}
	}
}

// Run describes a run that starts.
type Run struct {
	Name          string // of the experiment
	Model         string
	Dir           string
	Parameters    int
	FirstStep     int // 1, or the step after the checkpoint
	Steps         int // the last step
	TokensPerStep int
	FLOPsPerToken float64 // of a training step; 0 when it is not known
	LogInterval   int     // steps between lines of the log
}

// Step is one step of training.
type Step struct {
	Step            int
	Loss            float64  // mean of the global batch, nats a token
	CrossEntropy    *float64 // what Loss is without patches, when it has some
	ValidLoss       *float64 // when the step was followed by an evaluation
	ValidTokens     int      // that ValidLoss is the mean of
	LR              float64
	GradNorm        float64 // before clipping
	Tokens          int
	TokensPerSecond float64
	Duration        time.Duration
	ReferenceShare  float64                   // part of Duration that impls of kind reference took
	Reference       []opmanager.ReferenceCost // the ops that made it more than a tenth
}

// Result is how a run ended.
type Result struct {
	Run
	LastStep     int
	FirstLoss    float64
	Loss         float64
	CrossEntropy *float64 // what Loss is without patches, when it has some
	ValidLoss    *float64
	ValidTokens  int // that ValidLoss is the mean of; 0 when it is not known
	Duration     time.Duration
	Impls        []opmanager.ImplStats     // what each impl did in training
	Reference    []opmanager.ReferenceCost // the ops that made steps slow by running on reference
	Unusable     []opmanager.UnusableImpl  // impls that were asked for and cannot serve
	Prompt       string                    // what the generated text follows
	Sample       string                    // generated text, with the prompt in front
	Err          error                     // nil when the run went to its last step
	Ignored      []string                  // names of parameters that were given and have no effect
}
