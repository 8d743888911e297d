package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultKeep is how long etcd keeps the Status of a run that has ended or is lost.
const DefaultKeep = 24 * time.Hour

// statusEvery is how often a run writes its Status while its state stays the same. etcd keeps every
// version of a key until it is compacted, so the numbers of the moment come by Client.List.
const statusEvery = time.Minute

// RunState is what a run does.
type RunState string

// The states of a run.
const (
	StateStarting RunState = "starting"
	StateTraining RunState = "training"
	StateStalled  RunState = "stalled"  // it hangs
	StateDiverged RunState = "diverged" // it trains, but its loss does not come back
	StateEnded    RunState = "ended"    // with Status.ExitCode
	StateLost     RunState = "lost"     // it has been silent for the duration of its lease, and has not ended
)

// Status is how a run gets on.
type Status struct {
	State  RunState `json:"state,omitempty"`  // "" for a run of a release that does not say
	Detail string   `json:"detail,omitempty"` // where the run hangs, how it has diverged, or why it has ended
	// ExitCode is that of the process, for StateEnded.
	ExitCode        *int     `json:"exit_code,omitempty"`
	Step            int      `json:"step"`            // the last one that is done
	Steps           int      `json:"steps,omitempty"` // the last one of the run; 0 if unknown
	Loss            *float64 `json:"loss"`
	TokensPerSecond *float64 `json:"tokens_per_second"`
	Pace            Pace     `json:"pace"`
	// Dir is the run directory, on the host of the run.
	Dir string `json:"dir,omitempty"`
	// Seen is when the run was last heard of, by its own clock.
	Seen time.Time `json:"seen"`
}

// String returns the state, with the exit code of a run that has ended, and "-" if it is unknown.
func (s Status) String() string {
	switch {
	case s.State == "":
		return "-"
	case s.State == StateEnded && s.ExitCode != nil:
		return "ended " + strconv.Itoa(*s.ExitCode)
	}
	return string(s.State)
}

// same reports whether two statuses differ in nothing but numbers that change with each step.
func (s Status) same(o Status) bool {
	return s.State == o.State && s.Detail == o.Detail && s.Dir == o.Dir && s.String() == o.String()
}

// Pace is how fast the last steps of a run were under one dispatch table, and what impls did in
// them.
type Pace struct {
	Generation  uint64    `json:"generation"`   // of the table
	StepSeconds []float64 `json:"step_seconds"` // of the last steps that began and ended under it
	Calls       uint64    `json:"calls"`        // of ops under it
	Fallbacks   uint64    `json:"fallbacks"`    // those that another impl than the first candidate served
}

// Median returns the median duration of the steps in seconds, 0 without steps.
func (p Pace) Median() float64 {
	if len(p.StepSeconds) == 0 {
		return 0
	}
	all := slices.Sorted(slices.Values(p.StepSeconds))
	return all[len(all)/2]
}

// FallbackRate returns the share of calls that fell back.
func (p Pace) FallbackRate() float64 {
	if p.Calls == 0 {
		return 0
	}
	return float64(p.Fallbacks) / float64(p.Calls)
}

// maxSteps is how many steps a Pace has.
const maxSteps = 32

// PaceMeter measures the Pace of a run. It is safe for concurrent use.
type PaceMeter struct {
	generation func() uint64
	totals     func() (calls, fallbacks uint64)

	mu               sync.Mutex
	now              Pace
	calls, fallbacks uint64 // when the table of now came into force
}

// NewPaceMeter returns the PaceMeter of a run. Its arguments return the present generation, and the
// numbers of calls and fallbacks since the run began.
func NewPaceMeter(generation func() uint64, totals func() (calls, fallbacks uint64)) *PaceMeter {
	return &PaceMeter{generation: generation, totals: totals}
}

// Step adds a step that has ended. A step in which the dispatch table has changed counts for none.
func (p *PaceMeter) Step(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.generation(); g != p.now.Generation {
		p.now = Pace{Generation: g}
		p.calls, p.fallbacks = p.totals()
		return
	}
	if p.now.StepSeconds = append(p.now.StepSeconds, took.Seconds()); len(p.now.StepSeconds) > maxSteps {
		p.now.StepSeconds = slices.Clone(p.now.StepSeconds[1:])
	}
}

// Pace returns the Pace under the table of the last step.
func (p *PaceMeter) Pace() Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now
	now.StepSeconds = slices.Clone(now.StepSeconds)
	if now.Generation != 0 {
		calls, fallbacks := p.totals()
		now.Calls, now.Fallbacks = calls-p.calls, fallbacks-p.fallbacks
	}
	return now
}

// Ended says that the run has ended, with the exit code of its process and the reason, "" for none.
// Only the first call counts. Close writes it for good.
func (a *Agent) Ended(code int, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended != nil {
		return
	}
	a.ended = &Status{State: StateEnded, ExitCode: &code, Detail: shorten(reason)}
}

// status returns the present Status.
func (a *Agent) status() Status {
	var s Status
	if a.set.Status != nil {
		s = a.set.Status()
	}
	s.Detail, s.Seen = shorten(s.Detail), time.Now().UTC()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended != nil {
		s.State, s.ExitCode, s.Detail = a.ended.State, a.ended.ExitCode, a.ended.Detail
	}
	return s
}

// publishStatus writes the Status if the state has changed, or the last one is old.
func (s *session) publishStatus(ctx context.Context) error {
	now := s.status()
	if s.told.same(now) && now.Seen.Sub(s.told.Seen) < statusEvery {
		return nil
	}
	record := Member{ID: s.id, Identity: s.set.Identity, Status: now}
	err := s.set.Config.request(ctx, "write the state", func(ctx context.Context) error {
		if _, err := s.client.etcd.KeepAliveOnce(ctx, s.keep); err != nil {
			return err
		}
		_, err := s.client.etcd.Put(ctx, s.keys.status+s.id, string(encode(record)), clientv3.WithLease(s.keep))
		return err
	})
	if err == nil {
		s.told = now
	}
	return err
}

// leave writes the last Status and removes the record of the run. It waits at most a second for
// each.
func (s *session) leave(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	s.told = Status{}
	if err := s.publishStatus(last); err != nil {
		s.set.Log.Warn("the fleet does not learn how this run ends; it will show it as lost", "reason", err)
	}
	s.client.forget(ctx, s.lease)
}

// statuses adds to the members of a Snapshot how they get on, and those that have ended or are
// lost.
func (s *Snapshot) statuses(records []Member) {
	there := map[string]int{}
	for i, m := range s.Members {
		there[m.ID] = i
	}
	s.Ended = []Member{}
	for _, r := range records {
		if i, ok := there[r.ID]; ok {
			s.Members[i].Status = r.Status
			continue
		}
		if r.Status.State != StateEnded {
			r.Status.State = StateLost
		}
		s.Ended = append(s.Ended, r)
	}
	slices.SortStableFunc(s.Ended, func(a, b Member) int { return b.Status.Seen.Compare(a.Status.Seen) })
}

// List is Snapshot with the present numbers of each run, for which it asks the runs. A run that
// does not answer within the duration patience has those that it wrote last.
func (c *Client) List(ctx context.Context, patience time.Duration) (Snapshot, error) {
	s, heard, err := c.ask(ctx, Question{Status: true}, patience, nil, nil)
	if err != nil {
		return Snapshot{}, err
	}
	for i, m := range s.Members {
		if r := heard[m.ID]; r.Status != nil {
			s.Members[i].Status = *r.Status
		}
	}
	return s, nil
}

// Lost returns the runs that are lost, without those whose place another run has taken since: one
// with the same experiment and rank that began later.
func (s Snapshot) Lost() (lost []Member) {
	for _, m := range s.Ended {
		later := func(other Member) bool {
			return other.Experiment == m.Experiment && other.Rank == m.Rank && other.Started.After(m.Started)
		}
		if m.Status.State == StateLost && !slices.ContainsFunc(s.Members, later) && !slices.ContainsFunc(s.Ended, later) {
			lost = append(lost, m)
		}
	}
	return lost
}

// LogQuestion asks one run for its log.
type LogQuestion struct {
	Run   string `json:"run"`             // the id
	Lines int    `json:"lines,omitempty"` // this many from the end
	// After, unless it is 0, asks instead for all lines after the one to which a LogPart came.
	After int64 `json:"after,omitempty"`
}

// LogPart is a part of the log of a run.
type LogPart struct {
	Lines []string `json:"lines"`
	Next  int64    `json:"next"` // for After of the next question
}

// Log asks a run for its log.
func (c *Client) Log(ctx context.Context, q LogQuestion, patience time.Duration) (LogPart, error) {
	s, heard, err := c.ask(ctx, Question{Log: &q}, patience, func(m Member) bool { return m.ID == q.Run }, nil)
	if err != nil {
		return LogPart{}, err
	}
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.ID == q.Run })
	if i < 0 {
		return LogPart{}, c.noLog(s, q.Run)
	}
	r := heard.of(s.Members[i], patience)
	if r.Log == nil {
		return LogPart{}, fmt.Errorf("fleet: run %s gives no log: %s", q.Run, r.Error)
	}
	return *r.Log, nil
}

// GoneError reports that a run cannot answer because it has ended or is lost.
type GoneError struct {
	Run    string
	Status Status
	Where  string // its files are
}

// Error says where the log is.
func (e *GoneError) Error() string {
	return fmt.Sprintf("fleet: run %s is %s, so nobody can answer; its log is on %s", e.Run, e.Status, e.Where)
}

// noLog says where the log of a run is that is not there.
func (c *Client) noLog(s Snapshot, id string) error {
	for _, m := range s.Ended {
		if m.ID == id {
			where := m.Host
			if m.Status.Dir != "" {
				where += ", in " + m.Status.Dir
			}
			return &GoneError{Run: id, Status: m.Status, Where: where}
		}
	}
	return fmt.Errorf("fleet: given run %q, want the id of a run that is there (primus fleet list)", id)
}
