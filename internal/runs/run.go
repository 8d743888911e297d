package runs

import (
	"math"
	"time"

	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// State is the state of a run.
type State string

// The states of a run.
const (
	Running     State = "running"
	Done        State = "done"        // it reached its last step
	Interrupted State = "interrupted" // it was stopped and saved
	Failed      State = "failed"
	Diverged    State = "diverged" // its loss does not come back, whether it goes on or has ended
	Dead        State = "dead"     // its process is gone without recording an end
	Unknown     State = "unknown"  // it has metrics but no record
)

// Run is the present state of a training run.
type Run struct {
	ID              string     `json:"id" doc:"names the run in paths of this service"`
	Name            string     `json:"name" doc:"of the experiment"`
	Model           string     `json:"model"`
	Dir             string     `json:"dir" doc:"the run directory"`
	Host            string     `json:"host"`
	PID             int        `json:"pid" doc:"of the process that trains or trained last"`
	Rank            int        `json:"rank"`
	WorldSize       int        `json:"world_size"`
	State           State      `json:"state" enum:"running,done,interrupted,failed,diverged,dead,unknown"`
	Error           string     `json:"error,omitempty"`
	Stalled         string     `json:"stalled,omitempty" doc:"where the run hangs; absent while it gets on"`
	Diverged        string     `json:"diverged,omitempty" doc:"what was found in the losses; absent while they fall"`
	Parameters      int        `json:"parameters"`
	FirstStep       int        `json:"first_step"`
	Step            int        `json:"step" doc:"last finished step"`
	Steps           int        `json:"steps" doc:"the step at which the run is done; 0 when it is not known"`
	TokensPerStep   int        `json:"tokens_per_step"`
	LossUnit        string     `json:"loss_unit" doc:"of losses, such as nats per token"`
	Loss            *float64   `json:"loss" doc:"of the last step; null when it is not known or not a number"`
	ValidLoss       *float64   `json:"valid_loss"`
	LR              *float64   `json:"lr"`
	GradNorm        *float64   `json:"grad_norm"`
	TokensPerSecond *float64   `json:"tokens_per_second"`
	TFLOPSPerDevice float64    `json:"tflops_per_device,omitempty" doc:"in the last step, as a Python framework reports it"`
	MemoryBytes     int64      `json:"memory_bytes,omitempty" doc:"of a device, as its backend or a Python framework reports it"`
	Ranks           *Ranks     `json:"ranks,omitempty" doc:"how the ranks of a job spent the last step; absent for one rank"`
	Started         time.Time  `json:"started"`
	Ended           *time.Time `json:"ended"`
	ElapsedSeconds  float64    `json:"elapsed_seconds" doc:"since the run started, until it ended or was last heard of"`
	ETASeconds      *float64   `json:"eta_seconds" doc:"until the last step, if the steps left take as long as those of this run"`

	CheckpointStep       int        `json:"checkpoint_step" doc:"of the last checkpoint, 0 for none"`
	CheckpointSaved      *time.Time `json:"checkpoint_saved" doc:"when this process saved it; null before it has"`
	CheckpointAgeSeconds *float64   `json:"checkpoint_age_seconds" doc:"since then"`

	Fallbacks uint64 `json:"fallbacks" doc:"calls of ops that another impl than the first candidate served"`
	Declines  uint64 `json:"declines" doc:"calls that an impl declined as unsupported"`
	Errors    uint64 `json:"errors" doc:"calls in which an impl failed"`

	Reference []opmanager.ReferenceCost `json:"reference,omitempty" doc:"ops on impls of kind reference that made steps slow: by the last such step, while the run goes on, else by all"`
}

// Ranks says how the ranks of a job spent a step.
type Ranks struct {
	ComputeSeconds []float64 `json:"compute_seconds" doc:"by rank, without waiting for others"`
	WaitSeconds    float64   `json:"wait_seconds" doc:"that the first rank waited for others"`
	Slowest        int       `json:"slowest" doc:"the rank that computed longest"`
	Skew           float64   `json:"skew" doc:"by how much of the mean that is longer than the mean"`
}

func ranksOf(times *backend.RankTimes) *Ranks {
	if times == nil {
		return nil
	}
	r := &Ranks{WaitSeconds: times.Waited.Seconds()}
	r.Slowest, r.Skew = times.Slowest()
	for _, d := range times.Computed {
		r.ComputeSeconds = append(r.ComputeSeconds, d.Seconds())
	}
	return r
}

// update takes the last step.
func (r *Run) update(last rundir.Record) {
	r.Step, r.Loss, r.LR, r.GradNorm = int(last.Step), finite(last.Loss), finite(last.LR), finite(last.GradNorm)
	r.TokensPerSecond, r.TFLOPSPerDevice, r.MemoryBytes = finite(last.TokensPerSecond), last.TFLOPSPerDevice, last.MemoryBytes
}

// count sets the calls that impls served in place of others, declined or failed.
func (r *Run) count(impls []Use) {
	r.Fallbacks, r.Declines, r.Errors = 0, 0, 0
	for _, i := range impls {
		r.Fallbacks += i.Fallbacks
		r.Declines += i.Declines
		r.Errors += i.Errors
	}
}

// reckon sets the times that depend on now, the time of the last sign of life of the run.
func (r *Run) reckon(now time.Time) {
	until := now
	if r.Ended != nil {
		until = *r.Ended
	}
	r.ElapsedSeconds = max(0, until.Sub(r.Started).Seconds())
	r.ETASeconds, r.CheckpointAgeSeconds = nil, nil
	if done := r.Step - r.FirstStep + 1; r.Ended == nil && done > 0 && r.Steps >= r.Step {
		r.ETASeconds = finite(r.ElapsedSeconds / float64(done) * float64(r.Steps-r.Step))
	}
	if r.CheckpointSaved != nil {
		r.CheckpointAgeSeconds = finite(max(0, now.Sub(*r.CheckpointSaved).Seconds()))
	}
}

// Use is the number of calls of an op that an impl served in a run, and their time.
type Use struct {
	Op        string `json:"op"`
	Impl      string `json:"impl_id"`
	Kind      string `json:"kind"`
	Calls     uint64 `json:"calls"`
	Nanos     int64  `json:"nanos"`
	Errors    uint64 `json:"errors"`
	Declines  uint64 `json:"declines"`
	Fallbacks uint64 `json:"fallbacks"`
}

// usesOfRanks returns the impls that processes of a framework use. How often they call them is 0
// where they do not count it.
func usesOfRanks(ranks []backend.RankUse) []Use {
	all := make([]Use, len(ranks))
	for i, u := range ranks {
		all[i] = Use{u.Op, u.Impl, u.Kind, u.Calls, u.Nanos, u.Errors, u.Declines, u.Fallbacks}
	}
	return all
}

// uses returns the impls that were called.
func uses(impls []opmanager.ImplStats) []Use {
	all := []Use{}
	for _, i := range impls {
		if i.Calls+i.Errors+i.Declines > 0 {
			all = append(all, Use{i.Op, i.ID, i.Kind.String(), i.Calls, int64(i.Duration), i.Errors, i.Declines, i.Fallbacks})
		}
	}
	return all
}

// finite returns a number that JSON can hold, nil for NaN and infinities.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
