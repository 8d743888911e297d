// Package timeline records when each call of an op began and ended, and writes it in the trace
// event format that Perfetto and chrome://tracing open.
//
// # Concurrency
//
// A Timeline may see calls from several goroutines.
package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
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

// event is a complete event of the format: times are in microseconds.
type event struct {
	Name     string         `json:"name"`
	Category string         `json:"cat"`
	Phase    string         `json:"ph"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// stepLane is the thread of the steps; calls have the numbers after it.
const stepLane = 0

// Begin implements opmanager.Tap.
func (t *Timeline) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	args := map[string]any{"call": call.Args.Describe(), "bytes": call.Bytes()}
	if call.Layer >= 0 {
		args["layer"] = call.Layer
	}
	if call.Phase != oppolicy.PhaseUnspecified {
		args["phase"] = call.Phase.String()
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
		t.add(call.Op.Name(), "op", lane+stepLane+1, begin, end, args)
		return nil
	}
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
		t.add(fmt.Sprintf("step %d", t.step), "step", stepLane, t.begun, now, nil)
	}
	t.step, t.begun = step, now
}

// add adds an event. The caller holds mu.
func (t *Timeline) add(name, category string, lane int, begin, end time.Time, args map[string]any) {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	t.events = append(t.events, event{
		Name: name, Category: category, Phase: "X", Start: us(begin.Sub(t.start)), Duration: us(end.Sub(begin)), Process: 1, Thread: lane, Args: args,
	})
}

// Calls returns the number of recorded calls.
func (t *Timeline) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, e := range t.events {
		if e.Category == "op" {
			n++
		}
	}
	return n
}

// WriteJSON writes the timeline of a process with a name.
func (t *Timeline) WriteJSON(w io.Writer, process string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []event{{Name: "process_name", Phase: "M", Process: 1, Args: map[string]any{"name": process}}, t.laneName(stepLane, "steps")}
	for i := range t.lanes {
		all = append(all, t.laneName(i+stepLane+1, fmt.Sprintf("calls %d", i+1)))
	}
	buffered := bufio.NewWriter(w)
	err := json.NewEncoder(buffered).Encode(struct {
		Unit   string  `json:"displayTimeUnit"`
		Events []event `json:"traceEvents"`
	}{"ms", append(all, t.events...)})
	if err != nil {
		return err
	}
	return buffered.Flush()
}

func (t *Timeline) laneName(lane int, name string) event {
	return event{Name: "thread_name", Phase: "M", Process: 1, Thread: lane, Args: map[string]any{"name": name}}
}
