package backend

import (
	"cmp"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
)

// Observer receives the events of a run. Its methods should return quickly.
type Observer interface {
	RunStarted(Run)
	StepDone(Step)
	RunEnded(Result)
}

// Observers calls several observers in turn.
type Observers []Observer

// RunStarted calls every observer.
func (o Observers) RunStarted(r Run) {
	for _, each := range o {
		each.RunStarted(r)
	}
}

// StepDone calls every observer.
func (o Observers) StepDone(s Step) {
	for _, each := range o {
		each.StepDone(s)
	}
}

// RunEnded calls every observer.
func (o Observers) RunEnded(r Result) {
	for _, each := range o {
		each.RunEnded(r)
	}
}

// CheckpointObserver is an Observer that also receives each complete checkpoint.
type CheckpointObserver interface{ CheckpointSaved(step int) }

// CheckpointSaved calls every CheckpointObserver.
func (o Observers) CheckpointSaved(step int) {
	for _, each := range o {
		if c, ok := each.(CheckpointObserver); ok {
			c.CheckpointSaved(step)
		}
	}
}

// Stall is a run that hangs: it has stayed in one phase for much longer than usual.
type Stall struct {
	Phase Phase
	Step  int
	For   time.Duration // it has been there
	Text  string        // says where it hangs
}

// StallObserver is an Observer that also receives when the run hangs, and when it goes on. It is
// called by a watchdog, while the trainer may call the other methods.
type StallObserver interface {
	Stalled(Stall)
	Resumed()
}

// Stalled calls every StallObserver.
func (o Observers) Stalled(s Stall) {
	for _, each := range o {
		if w, ok := each.(StallObserver); ok {
			w.Stalled(s)
		}
	}
}

// Resumed calls every StallObserver.
func (o Observers) Resumed() {
	for _, each := range o {
		if w, ok := each.(StallObserver); ok {
			w.Resumed()
		}
	}
}

// PatchObserver is an Observer that also receives the patches that were applied in a phase.
type PatchObserver interface {
	PatchesApplied(phase string, ids []string)
}

// PatchesApplied calls every PatchObserver.
func (o Observers) PatchesApplied(phase string, ids []string) {
	for _, each := range o {
		if p, ok := each.(PatchObserver); ok {
			p.PatchesApplied(phase, ids)
		}
	}
}

// DispatchObserver is an Observer that also receives what the op managers in the processes of a
// framework do. The events are opmanager.Registered, Selected, Switched, FellBack, Failed,
// Quarantined and Released.
type DispatchObserver interface {
	OpEvent(rank int, e opmanager.Event)
}

// OpEvent calls every DispatchObserver.
func (o Observers) OpEvent(rank int, e opmanager.Event) {
	for _, each := range o {
		if d, ok := each.(DispatchObserver); ok {
			d.OpEvent(rank, e)
		}
	}
}

// RankCallObserver is an Observer that also receives the calls of ops in the processes of a
// framework that count them: those since it last received some.
type RankCallObserver interface {
	RankCalls(rank int, calls []RankCalls)
}

// RankCalls calls every RankCallObserver.
func (o Observers) RankCalls(rank int, calls []RankCalls) {
	for _, each := range o {
		if d, ok := each.(RankCallObserver); ok {
			d.RankCalls(rank, calls)
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
	FLOPsPerToken float64 // those of a training step; 0 if unknown
	LogInterval   int     // steps between lines of the log
	LossUnit      string  // "" means nats per token, see LossIn
	Devices       int     // that the processes of a framework use; 0 for a run in this program
}

// LossIn returns the unit of losses.
func (r Run) LossIn() string { return cmp.Or(r.LossUnit, "nats per token") }

// Step is the record of one step of training. What a run keeps or shows of a step is derived from
// it: [RunLosses], the records of a run directory, and what Observers make of it.
type Step struct {
	Step            int
	Steps           int      // the last step of the run, as a framework reports it; 0 when it does not
	Loss            float64  // mean over the global batch
	CrossEntropy    *float64 // Loss without the effect of patches; nil if no patch changes it
	ValidLoss       *float64 // nil if no evaluation followed the step
	ValidTokens     int      // the number of tokens in ValidLoss
	ValidBytes      int      // of the text of these tokens; 0 if unknown
	TestLoss        *float64 // nil if no test followed the step
	TestTokens      int      // the number of tokens in TestLoss
	AuxLoss         *float64 // the auxiliary loss of experts; nil without one
	LR              float64
	GradNorm        float64 // before clipping
	LossScale       float64 // the factor of losses in fp16, after the step; 0 without fp16
	Skipped         bool    // the weights did not change: gradients overflowed in fp16, or the step was a spike
	Tokens          int     // since the step before, of which a framework may not tell
	TokensPerSecond float64
	Duration        time.Duration
	TFLOPSPerDevice float64                   // as a framework reports it; 0 when it does not
	MemoryBytes     int64                     // of a device, as its backend or a framework reports it; 0 when none does
	Device          *device.Work              // what a device did in steps since the step before; nil when nothing measures it
	ReferenceShare  float64                   // the part of Duration spent in impls of kind reference
	Reference       []opmanager.ReferenceCost // the ops responsible if that is more than a tenth
	Ranks           *RankTimes                // nil for one rank
}

// RunLosses are the losses of a run up to its last step, as a checkpoint keeps them and a Result
// reports them.
type RunLosses struct {
	Loss         float64  `json:"loss"`
	CrossEntropy *float64 `json:"cross_entropy,omitempty"` // Loss without the effect of patches; nil if no patch changes it
	FirstLoss    float64  `json:"first_loss"`
	ValidLoss    *float64 `json:"valid_loss,omitempty"`
	ValidTokens  int      `json:"valid_tokens,omitempty"` // the number of tokens in ValidLoss; 0 if unknown
	ValidBytes   int      `json:"valid_bytes,omitempty"`  // of the text of these tokens; 0 if unknown
	TestLoss     *float64 `json:"test_loss,omitempty"`
	TestTokens   int      `json:"test_tokens,omitempty"` // the number of tokens in TestLoss
}

// Update takes the losses of the last step. Those of an evaluation stay until the next one.
func (l *RunLosses) Update(s Step) {
	l.Loss, l.CrossEntropy = s.Loss, s.CrossEntropy
	if s.Step == 1 {
		l.FirstLoss = s.Loss
	}
	if s.ValidLoss != nil {
		l.ValidLoss, l.ValidTokens, l.ValidBytes = s.ValidLoss, s.ValidTokens, s.ValidBytes
	}
	if s.TestLoss != nil {
		l.TestLoss, l.TestTokens = s.TestLoss, s.TestTokens
	}
}

// RankTimes says how the ranks of a job spent a step.
type RankTimes struct {
	Computed []time.Duration // by rank: forward and backward passes, without waiting for others
	Waited   time.Duration   // for which this rank has waited for others in the step
	Traffic  []Traffic       // of this rank, since the run began
}

// Slowest returns the rank that computed longest, and by how much of the mean that is longer than
// the mean.
func (r *RankTimes) Slowest() (rank int, skew float64) {
	sum := time.Duration(0)
	for i, d := range r.Computed {
		sum += d
		if d > r.Computed[rank] {
			rank = i
		}
	}
	if sum <= 0 {
		return rank, 0
	}
	return rank, r.Computed[rank].Seconds()*float64(len(r.Computed))/sum.Seconds() - 1
}

// Traffic is what a rank has passed to the calls of a collective, and how long they took.
type Traffic struct {
	Op    string
	Calls int64
	Bytes int64
	Time  time.Duration
}

// Job says how the time of the ranks of a job was spent in steps.
type Job struct {
	Ranks   int
	Slowest int       // the rank that computed longest
	Behind  float64   // by how much of the mean that is longer than the mean
	Traffic []Traffic // of the first rank
	Waiting float64   // the share of the time of the first rank in which it waited for others
	Hidden  float64   // the share of the exchange of gradients and weights during which the first rank computed
}

// DeviceUse says what a device did in a run in this program.
type DeviceUse struct {
	Device      string             `json:"device"` // such as "opencl:0"
	Description device.Description `json:"description"`
	Memory      device.MemoryUse   `json:"memory"`
	Measured    bool               `json:"measured"`   // whether the backend measures commands; the rest is zero otherwise
	StepTime    time.Duration      `json:"step_nanos"` // of the steps after the first, which builds programs
	Steps       device.Work        `json:"steps"`      // the commands of these steps
	Ops         []OpWork           `json:"ops"`        // all commands, by the op that queued them; the longest work first
}

// OpWork is what a device did for the calls of an op that an impl served.
type OpWork struct {
	Op   string      `json:"op"` // "" for commands outside of calls
	Impl string      `json:"impl_id"`
	Work device.Work `json:"work"`
}

// Outside returns the share of the time of steps in which the device ran no command.
func (u *DeviceUse) Outside() float64 {
	if u.StepTime <= 0 {
		return 0
	}
	return max(1-u.Steps.Busy.Seconds()/u.StepTime.Seconds(), 0)
}

// Result is how a run ended.
type Result struct {
	Run
	RunLosses
	LastStep   int
	Duration   time.Duration
	Impls      []opmanager.ImplStats     // what each impl did in training
	Reference  []opmanager.ReferenceCost // the ops that made steps slow because they ran on the reference
	Unusable   []opmanager.UnusableImpl  // see opmanager.Manager.Unusable
	Canaries   []opmanager.Canary        // impls on trial, and how that went
	PutBack    []opmanager.PolicyPutBack // see opmanager.PolicyStack.PutBack
	Prompt     string                    // the prompt of Sample
	Sample     string                    // generated text, which begins with the prompt
	Err        error                     // nil if the run reached its last step
	Ignored    []string                  // the names of parameters that have no effect
	Ranks      []RankUse                 // the impls that the processes of a framework use
	Device     *DeviceUse                // nil for a run in host memory
	Job        *Job                      // of the ranks that trained together; nil for one rank
	Restarts   Restarts                  // of the ranks
	Health     Health                    // of the losses
	BadRecords int                       // lines of the data that were left out because they could not be read
	Tracking   []string                  // what became of the run at its trackers, a line each
	Patches    []PatchResult
	Versions   []Version // of what a framework runs with
}
