package timeline

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/ops/collective"
)

// Timeline is an opmanager.Tap that records calls. The zero value is ready to use.
type Timeline struct {
	mu     sync.Mutex
	start  time.Time
	step   int
	begun  time.Time // of the step
	lanes  []bool    // those in use: calls that overlap have different ones
	events []event
}

// stepLane is the thread of the steps; calls have the numbers after it.
const stepLane = 0

// The categories of events.
const (
	categoryStep       = "step"
	categoryOp         = "op"
	categoryCollective = "collective"
)

// Begin implements opmanager.Tap.
func (t *Timeline) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	args := map[string]any{"call": call.Args.Describe(), "bytes": call.Bytes()}
	if call.Layer >= 0 {
		args["layer"] = call.Layer
	}
	if call.Phase != oppolicy.PhaseUnspecified {
		args["phase"] = call.Phase.String()
	}
	category := categoryOp
	if _, ok := call.Op.Args().FieldByName("Group"); ok {
		if group, ok := groupOf(call); ok {
			category, args["group"], args["group_rank"] = categoryCollective, ranksOf(group), group.Rank
		}
	}
	lane := t.take()
	begin := time.Now()
	return func(served opmanager.ImplInfo, err error) error {
		end := time.Now()
		if args["impl"] = served.ID; err != nil {
			args["error"] = err.Error()
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lanes[lane] = false
		args["step"] = t.step
		t.add(call.Op.Name(), category, lane+stepLane+1, begin, end, args)
		return nil
	}
}

// groupOf returns the group of ranks that a collective runs in.
func groupOf(call opmanager.TappedCall) (collective.Group, bool) {
	_, args := call.Args.Clone()
	group, ok := args.FieldByName("Group").Interface().(collective.Group)
	return group, ok
}

// ranksOf names the ranks of the job that are in a group.
func ranksOf(g collective.Group) string {
	first, stride := g.First, max(1, g.Stride)
	text := fmt.Sprintf("ranks %d to %d", first, first+(g.Ranks-1)*stride)
	if stride > 1 {
		text += fmt.Sprintf(" in steps of %d", stride)
	}
	return text
}

// take returns the first free lane.
func (t *Timeline) take() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.start.IsZero() {
		t.start = time.Now()
	}
	i := slices.Index(t.lanes, false)
	if i < 0 {
		i, t.lanes = len(t.lanes), append(t.lanes, true)
	}
	t.lanes[i] = true
	return i
}

// SetStep ends the step before, if there is one, and begins another. Step 0 begins none.
func (t *Timeline) SetStep(step int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.start.IsZero() {
		t.start = now
	}
	if t.step > 0 {
		t.add(fmt.Sprintf("step %d", t.step), categoryStep, stepLane, t.begun, now, nil)
	}
	t.step, t.begun = step, now
}

// add adds an event. The caller holds mu.
func (t *Timeline) add(name, category string, lane int, begin, end time.Time, args map[string]any) {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	t.events = append(t.events, event{
		Name: name, Category: category, Phase: "X", Start: us(begin.Sub(t.start)), Duration: us(end.Sub(begin)), Thread: lane, Args: args,
	})
}

// Calls returns the number of recorded calls.
func (t *Timeline) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, e := range t.events {
		if e.Category != categoryStep {
			n++
		}
	}
	return n
}

// WriteJSON writes the timeline of a process: its name, and its rank in its job, which is 0 for a
// process alone.
func (t *Timeline) WriteJSON(w io.Writer, process string, rank int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []event{
		{Name: "process_name", Phase: phaseMeta, Args: map[string]any{"name": process}},
		{Name: "process_sort_index", Phase: phaseMeta, Args: map[string]any{"sort_index": rank}},
		laneName(stepLane, "steps"),
	}
	for i := range t.lanes {
		all = append(all, laneName(i+stepLane+1, fmt.Sprintf("calls %d", i+1)))
	}
	all = append(all, t.events...)
	for i := range all {
		all[i].Process = rank + 1
	}
	return file{Unit: "ms", Events: all, Other: &other{Began: t.start}}.write(w)
}

func laneName(lane int, name string) event {
	return event{Name: "thread_name", Phase: phaseMeta, Thread: lane, Args: map[string]any{"name": name}}
}
