package serve

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
)

// Run is a run of training as it stands.
type Run struct {
	Name            string     `json:"name"`
	Model           string     `json:"model"`
	Dir             string     `json:"dir"`
	State           string     `json:"state" enum:"running,done,interrupted,failed"`
	Error           string     `json:"error,omitempty"`
	Parameters      int        `json:"parameters"`
	FirstStep       int        `json:"first_step"`
	Step            int        `json:"step" doc:"last finished step"`
	Steps           int        `json:"steps" doc:"the step at which the run is done"`
	TokensPerStep   int        `json:"tokens_per_step"`
	Loss            *float64   `json:"loss" doc:"of the last step, nats a token; null when it is not known or not a number"`
	ValidLoss       *float64   `json:"valid_loss"`
	LR              *float64   `json:"lr"`
	GradNorm        *float64   `json:"grad_norm"`
	TokensPerSecond *float64   `json:"tokens_per_second"`
	Started         time.Time  `json:"started"`
	Ended           *time.Time `json:"ended"`
	ETASeconds      *float64   `json:"eta_seconds" doc:"until the last step, if the steps left take as long as those of this run"`
}

// Point is a step in the curve of a run.
type Point struct {
	Step            int      `json:"step"`
	Loss            *float64 `json:"loss"`
	ValidLoss       *float64 `json:"valid_loss,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second"`
}

// mostPoints bounds a curve. A curve that reaches it keeps every second of its points and grows half as fast.
const mostPoints = 2048

// Board keeps the progress of a run. It is an observer of the trainer and tells a Hub of what it sees.
type Board struct {
	hub *Hub

	mu     sync.Mutex
	run    *Run
	points []Point
	stride int // between the steps of points
}

// NewBoard returns a Board without a run.
func NewBoard(hub *Hub) *Board { return &Board{hub: hub} }

// RunStarted begins a run in place of the one before.
func (b *Board) RunStarted(r backend.Run) {
	b.mu.Lock()
	b.run = &Run{
		Name: r.Name, Model: r.Model, Dir: r.Dir, State: "running", Parameters: r.Parameters, FirstStep: r.FirstStep,
		Step: r.FirstStep - 1, Steps: r.Steps, TokensPerStep: r.TokensPerStep, Started: time.Now(),
	}
	b.points, b.stride = nil, 1
	b.mu.Unlock()
	b.hub.add(Event{Type: "run_started", Run: r.Name})
}

// StepDone takes the figures of a step.
func (b *Board) StepDone(s backend.Step) {
	p := Point{Step: s.Step, Loss: finite(s.Loss), TokensPerSecond: finite(s.TokensPerSecond)}
	if s.ValidLoss != nil {
		p.ValidLoss = finite(*s.ValidLoss)
	}
	b.mu.Lock()
	r := b.run
	r.Step, r.Loss, r.LR, r.GradNorm, r.TokensPerSecond = s.Step, p.Loss, finite(s.LR), finite(s.GradNorm), p.TokensPerSecond
	if s.ValidLoss != nil {
		r.ValidLoss = p.ValidLoss
	}
	if (s.Step-r.FirstStep)%b.stride == 0 || s.ValidLoss != nil {
		b.points = append(b.points, p)
	}
	if len(b.points) >= mostPoints {
		b.thin()
	}
	b.mu.Unlock()
	b.hub.addStep(p)
}

// thin keeps the points of every second stride and those with a validation loss; if that is not half of them, every
// second point.
func (b *Board) thin() {
	b.stride *= 2
	kept := slices.DeleteFunc(slices.Clone(b.points), func(p Point) bool {
		return (p.Step-b.run.FirstStep)%b.stride != 0 && p.ValidLoss == nil
	})
	if len(kept) > mostPoints*3/4 {
		kept = kept[:0]
		for i := 0; i < len(b.points); i += 2 {
			kept = append(kept, b.points[i])
		}
	}
	b.points = kept
}

// RunEnded says how the run ended.
func (b *Board) RunEnded(r backend.Result) {
	b.mu.Lock()
	if b.run != nil {
		now := time.Now()
		b.run.Ended, b.run.State = &now, "done"
		if r.Err != nil {
			b.run.State, b.run.Error = "failed", r.Err.Error()
		}
		if errors.Is(r.Err, backend.ErrInterrupted) {
			b.run.State = "interrupted"
		}
	}
	b.mu.Unlock()
	b.hub.add(Event{Type: "run_ended", Run: r.Name})
}

// Ready returns an error until a run has begun.
func (b *Board) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return errors.New("training has not begun")
	}
	return nil
}

// runs returns the run, if there is one.
func (b *Board) runs() []Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return []Run{}
	}
	r := *b.run
	if done := r.Step - r.FirstStep + 1; r.State == "running" && done > 0 {
		r.ETASeconds = finite(time.Since(r.Started).Seconds() / float64(done) * float64(r.Steps-r.Step))
	}
	return []Run{r}
}

// curve returns the points from a step on.
func (b *Board) curve(from int) []Point {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.points, from, func(p Point, step int) int { return p.Step - step })
	return append([]Point{}, b.points[i:]...)
}

// finite returns a figure that JSON can carry, nil for another.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

var _ backend.Observer = (*Board)(nil)
