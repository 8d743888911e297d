package runs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// BoardSettings are the optional settings of NewBoard. The zero value is usable.
type BoardSettings struct {
	Rank, WorldSize int
	Stats           func() []opmanager.ImplStats // the counters of impls; nil means none
	Log             *Tail                        // that of the run; nil means none
}

// Board keeps the progress of the run of this process. It is an observer of the trainer.
type Board struct {
	set  BoardSettings
	host string

	mu     sync.Mutex
	run    *Run
	curve  curve
	ranks  *backend.RankDispatch // of a framework in other processes
	judged string                // why the run has diverged; "" when it has not
	stall  string                // where the run hangs; "" when it does not
}

// NewBoard returns a Board without a run.
func NewBoard(set BoardSettings) *Board {
	host, _ := os.Hostname() // without a name, the run has no host
	return &Board{set: set, host: host}
}

// RunStarted begins a run, which replaces an earlier one.
func (b *Board) RunStarted(r backend.Run) {
	dir := r.Dir
	if whole, err := filepath.Abs(dir); err == nil && dir != "" {
		dir = whole
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = &Run{
		ID: r.Name, Name: r.Name, Model: r.Model, Dir: dir, Host: b.host, PID: os.Getpid(), Rank: b.set.Rank, WorldSize: max(b.set.WorldSize, 1),
		State: Running, Parameters: r.Parameters, FirstStep: r.FirstStep, Step: r.FirstStep - 1, Steps: r.Steps, TokensPerStep: r.TokensPerStep,
		LossUnit: r.LossIn(), Started: time.Now(), CheckpointStep: r.FirstStep - 1,
	}
	b.curve, b.judged = curve{}, ""
	b.ranks = &backend.RankDispatch{}
}

// OpEvent records an event of the op manager in a process of a framework.
func (b *Board) OpEvent(rank int, e opmanager.Event) {
	b.mu.Lock()
	ranks := b.ranks
	b.mu.Unlock()
	if ranks != nil {
		ranks.OpEvent(rank, e)
	}
}

// RankCalls records calls of ops in a process of a framework.
func (b *Board) RankCalls(rank int, calls []backend.RankCalls) {
	b.mu.Lock()
	ranks := b.ranks
	b.mu.Unlock()
	if ranks != nil {
		ranks.RankCalls(rank, calls)
	}
}

// StepDone records a step.
func (b *Board) StepDone(s backend.Step) {
	record := rundir.RecordOf(s)
	p := pointOf(record)
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.run
	r.update(record)
	if s.Steps > 0 {
		r.Steps = s.Steps
	}
	r.Ranks = ranksOf(s.Ranks)
	if s.ValidLoss != nil {
		r.ValidLoss = p.ValidLoss
	}
	if s.Reference != nil {
		r.Reference = s.Reference
	}
	b.curve.add(p)
}

// CheckpointSaved records a checkpoint.
func (b *Board) CheckpointSaved(step int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run != nil { // a checkpoint can be saved before the run begins
		now := time.Now()
		b.run.CheckpointStep, b.run.CheckpointSaved = step, &now
	}
}

// RunEnded records the end of the run.
func (b *Board) RunEnded(r backend.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return
	}
	now := time.Now()
	b.run.Ended, b.run.State, b.run.Reference = &now, Done, r.Reference
	if r.Err != nil {
		b.run.State, b.run.Error = Failed, r.Err.Error()
	}
	switch {
	case errors.Is(r.Err, backend.ErrInterrupted):
		b.run.State = Interrupted
	case errors.Is(r.Err, backend.ErrDiverged), r.Err == nil && r.Health.Diverged > 0:
		b.run.State = Diverged
	}
}

// Judged records that the run has diverged, and that it has recovered.
func (b *Board) Judged(j backend.Judgement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch j.Change {
	case backend.HealthDiverged:
		b.judged = j.Text
	case backend.HealthRecovered, backend.HealthRewound:
		b.judged = ""
	case backend.HealthSpike, backend.HealthSkipped:
	}
}

// Stalled records that the run hangs.
func (b *Board) Stalled(s backend.Stall) { b.setStall(s.Text) }

// Resumed records that it goes on.
func (b *Board) Resumed() { b.setStall("") }

func (b *Board) setStall(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stall = text
}

// StalledAt returns where the process hangs, "" if it does not.
func (b *Board) StalledAt() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stall
}

// Ready returns an error until a run has begun, and while it hangs.
func (b *Board) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return errors.New("training has not begun")
	}
	if b.stall != "" {
		return errors.New(b.stall)
	}
	return nil
}

// Runs returns the run, if there is one.
func (b *Board) Runs() []Run {
	r, ok := b.current()
	if !ok {
		return []Run{}
	}
	r.count(b.uses())
	return []Run{r}
}

func (b *Board) current() (r Run, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return Run{}, false
	}
	r = *b.run
	r.Stalled, r.Diverged = b.stall, b.judged
	if r.State == Running && r.Diverged != "" {
		r.State = Diverged
	}
	r.reckon(time.Now())
	return r, true
}

// uses returns the impls that the processes of a framework use, else those that this program has
// called.
func (b *Board) uses() []Use {
	b.mu.Lock()
	ranks := b.ranks
	b.mu.Unlock()
	if ranks != nil {
		if of := ranks.Uses(); len(of) > 0 {
			return usesOfRanks(of)
		}
	}
	return uses(b.stats())
}

func (b *Board) stats() []opmanager.ImplStats {
	if b.set.Stats == nil {
		return nil
	}
	return b.set.Stats()
}

// Curve returns the points of the run from a step on, and whether id names the run.
func (b *Board) Curve(id string, from int) (points []Point, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil || b.run.ID != id {
		return nil, false
	}
	return b.curve.from(from), true
}

// Uses returns the calls that each impl served, and whether id names the run.
func (b *Board) Uses(id string) (impls []Use, ok bool) {
	if r, known := b.current(); !known || r.ID != id {
		return nil, false
	}
	return b.uses(), true
}

// Log returns the last lines of the log, and whether id names the run.
func (b *Board) Log(id string, lines int) (text []byte, ok bool) {
	if r, known := b.current(); !known || r.ID != id {
		return nil, false
	}
	if b.set.Log == nil {
		return nil, true
	}
	return b.set.Log.Lines(lines), true
}

var (
	_ backend.Observer           = (*Board)(nil)
	_ backend.CheckpointObserver = (*Board)(nil)
	_ backend.DispatchObserver   = (*Board)(nil)
	_ backend.RankCallObserver   = (*Board)(nil)
	_ backend.StallObserver      = (*Board)(nil)
	_ backend.HealthObserver     = (*Board)(nil)
)
