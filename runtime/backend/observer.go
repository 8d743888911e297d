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

// Run describes a run that starts.
type Run struct {
	Name          string // of the experiment
	Model         string
	Dir           string
	Parameters    int
	FirstStep     int // 1, or the step after the checkpoint
	Steps         int // the last step
	TokensPerStep int
	LogInterval   int // steps between lines of the log
}

// Step is one step of training.
type Step struct {
	Step            int
	Loss            float64  // mean of the global batch, nats a token
	ValidLoss       *float64 // when the step was followed by an evaluation
	LR              float64
	GradNorm        float64 // before clipping
	Tokens          int
	TokensPerSecond float64
	Duration        time.Duration
}

// Result is how a run ended.
type Result struct {
	Run
	LastStep  int
	FirstLoss float64
	Loss      float64
	ValidLoss *float64
	Duration  time.Duration
	Impls     []opmanager.ImplStats // what each impl did in training
	Sample    string                // generated text
	Err       error                 // nil when the run went to its last step
}
