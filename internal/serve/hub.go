package serve

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// Event is something that happened in a run.
type Event struct {
	ID         string      `json:"id"`
	Time       time.Time   `json:"time"`
	Type       string      `json:"type" doc:"registered, selected, switched, fell_back, failed, declined, quarantined, released, canary, policy_changed, verification_failed, run_started, step, checkpoint_saved, stalled, resumed, spike, skipped, rewound, diverged, recovered, run_ended or lost"`
	Op         string      `json:"op,omitempty"`
	Impl       string      `json:"impl_id,omitempty" doc:"the impl that it is about, or that serves calls now"`
	From       string      `json:"from,omitempty" doc:"the impl that served calls before, or should have"`
	Rules      string      `json:"rules,omitempty"`
	Cause      string      `json:"cause,omitempty"`
	Until      string      `json:"until,omitempty" doc:"end of a quarantine"`
	Generation uint64      `json:"generation,omitempty"`
	Count      uint64      `json:"count,omitempty" doc:"for failed, declined and fell_back: how many there were since the last such event; for lost: how many events this client has missed"`
	Step       *runs.Point `json:"step,omitempty"`
	Run        string      `json:"run,omitempty"`
	Checkpoint int         `json:"checkpoint,omitempty" doc:"the step of a checkpoint that was saved, or that the run has gone back to"`

	text []byte // of the event in a stream
}

const (
	maxEvents = 1024 // that a Hub keeps

	// repeatEvery and stepEvery are the shortest times between two events of the same kind that
	// report repeated calls and steps.
	repeatEvery = time.Second
	stepEvery   = 200 * time.Millisecond
)

// Hub keeps the latest events and wakes the clients that wait for more. It never waits for a
// client: one that is too slow gets an event with the number of events that it has missed. Hub is a
// listener of an op manager and an observer of training. It must be the last observer of a run, so
// that a client that receives an event finds the state that the event led to.
type Hub struct {
	epoch string // begins the ids of this process

	mu       sync.Mutex
	events   []Event // event number n is at index (n-1) mod maxEvents
	next     uint64  // number of the next event; the first is 1
	count    uint64  // number of events other than repeated calls and steps
	changed  chan struct{}
	repeats  map[repeat]*repeated
	lastStep time.Time
	log      *slog.Logger // of the events; nil for none
}

// repeat identifies an event that may happen in every call.
type repeat struct{ kind, op, from, to string }

type repeated struct {
	sent  time.Time
	count uint64
}

// NewHub returns a Hub without events.
func NewHub() *Hub {
	return &Hub{epoch: strconv.FormatInt(time.Now().UnixNano(), 36), next: 1, changed: make(chan struct{}), repeats: map[repeat]*repeated{}}
}

// LogTo logs each event other than steps from now on, and those that there were, as a line with its
// type as the attribute event.
func (h *Hub) LogTo(log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = log
	for i := range h.events {
		h.logEvent(h.events[i])
	}
}

// logEvent writes the line of an event.
func (h *Hub) logEvent(e Event) {
	if h.log == nil || e.Step != nil {
		return
	}
	attrs := []slog.Attr{slog.String("event", e.Type)}
	for _, field := range []struct{ key, value string }{
		{"op", e.Op}, {"impl_id", e.Impl}, {"from", e.From}, {"rules", e.Rules}, {"cause", e.Cause}, {"until", e.Until},
	} {
		if field.value != "" {
			attrs = append(attrs, slog.String(field.key, field.value))
		}
	}
	for _, field := range []struct {
		key   string
		value uint64
	}{{"generation", e.Generation}, {"count", e.Count}, {"checkpoint", uint64(e.Checkpoint)}} {
		if field.value > 0 {
			attrs = append(attrs, slog.Uint64(field.key, field.value))
		}
	}
	h.log.LogAttrs(context.Background(), slog.LevelInfo, strings.ReplaceAll(e.Type, "_", " "), attrs...)
}

// EventTypes returns the types of events, as the attribute event of log lines in JSON has them.
func EventTypes() []string {
	return []string{
		"registered", "selected", "switched", "fell_back", "failed", "declined", "quarantined", "released", "canary", "policy_changed", "policy_put_back", "verification_failed",
		"run_started", "step", "checkpoint_saved", "stalled", "resumed", "spike", "skipped", "rewound", "diverged", "recovered", "run_ended", "lost",
	}
}

// OnEvent keeps an event of dispatch. It implements opmanager.Listener.
func (h *Hub) OnEvent(e opmanager.Event) {
	switch e := e.(type) {
	case opmanager.Registered:
		h.add(Event{Type: "registered", Count: uint64(e.Impls)})
	case opmanager.Selected:
		h.add(Event{Type: "selected", Op: e.Op, Impl: e.Impl.ID, Rules: e.Rules})
	case opmanager.Switched:
		h.add(Event{Type: "switched", Op: e.Op, From: e.From.ID, Impl: e.To.ID, Rules: e.Rules})
	case opmanager.FellBack:
		h.addRepeated(Event{Type: "fell_back", Op: e.Op, From: e.From.ID, Impl: e.To.ID, Cause: e.Cause.Error()})
	case opmanager.Failed:
		kind := "failed"
		if e.Declined {
			kind = "declined"
		}
		h.addRepeated(Event{Type: kind, Op: e.Op, Impl: e.Impl.ID, Cause: e.Err.Error()})
	case opmanager.Quarantined:
		until := "" // it is cleared
		if !e.Until.IsZero() {
			until = e.Until.Format(time.RFC3339)
		}
		h.add(Event{Type: "quarantined", Op: e.Op, Impl: e.Impl.ID, Cause: e.Cause.Error(), Until: until, Count: uint64(e.Failures)})
	case opmanager.Released:
		h.add(Event{Type: "released", Op: e.Op, Impl: e.Impl.ID})
	case opmanager.PolicyChanged:
		h.add(Event{Type: "policy_changed", Generation: e.Generation})
	case opmanager.PolicyPutBack:
		h.add(Event{Type: "policy_put_back", Op: e.Op, Generation: e.Generation, Cause: e.String()})
	case opmanager.VerificationFailed:
		h.addRepeated(Event{Type: "verification_failed", Op: e.Op, Impl: e.Impl.ID, Cause: "operand " + e.Operand + " " + cmp.Or(e.UnexpectedWrite, "differs from the result of "+cmp.Or(e.Than, "the reference"))})
	case opmanager.CanaryChanged:
		h.add(Event{Type: "canary", Op: e.Canary.Op, Impl: e.Canary.Impl, Cause: e.Canary.String()})
	}
}

func (h *Hub) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	h.addLocked(e)
}

func (h *Hub) addLocked(e Event) {
	e.Time, e.ID = time.Now(), h.id(h.next)
	e.text = e.encode()
	h.logEvent(e)
	if len(h.events) < maxEvents {
		h.events = append(h.events, Event{})
	}
	h.events[(h.next-1)%maxEvents] = e
	h.next++
	close(h.changed)
	h.changed = make(chan struct{})
}

// addRepeated keeps the first of several equal events at once. Of the others it keeps one every
// repeatEvery, with their number.
func (h *Hub) addRepeated(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := repeat{e.Type, e.Op, e.From, e.Impl}
	r, known := h.repeats[key]
	if !known {
		r = &repeated{}
		h.repeats[key] = r
	}
	r.count++
	if now := time.Now(); now.Sub(r.sent) >= repeatEvery {
		e.Count, r.count, r.sent = r.count, 0, now
		h.addLocked(e)
	}
}

// Stalled keeps that the run hangs.
func (h *Hub) Stalled(s backend.Stall) { h.add(Event{Type: "stalled", Cause: s.Text}) }

// Resumed keeps that it goes on.
func (h *Hub) Resumed() { h.add(Event{Type: "resumed"}) }

// Judged keeps a spike and what followed.
func (h *Hub) Judged(j backend.Judgement) {
	e := Event{Type: string(j.Change), Cause: j.Text, Checkpoint: j.To}
	if j.Change == backend.HealthSpike || j.Change == backend.HealthSkipped {
		h.addRepeated(e)
		return
	}
	h.add(e)
}

// OpEvent keeps an event of dispatch in a process of a framework.
func (h *Hub) OpEvent(_ int, e opmanager.Event) { h.OnEvent(e) }

// RunStarted keeps the beginning of a run.
func (h *Hub) RunStarted(r backend.Run) { h.add(Event{Type: "run_started", Run: r.Name}) }

// CheckpointSaved keeps the step of a checkpoint.
func (h *Hub) CheckpointSaved(step int) { h.add(Event{Type: "checkpoint_saved", Checkpoint: step}) }

// RunEnded keeps the end of a run.
func (h *Hub) RunEnded(r backend.Result) { h.add(Event{Type: "run_ended", Run: r.Name}) }

// StepDone keeps at most one step of training every stepEvery.
func (h *Hub) StepDone(s backend.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.lastStep) >= stepEvery {
		h.lastStep = now
		p := runs.PointOf(s)
		h.addLocked(Event{Type: "step", Step: &p})
	}
}

// changeCount returns how many events there were other than repeated calls and steps.
func (h *Hub) changeCount() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func (h *Hub) id(number uint64) string { return h.epoch + "-" + strconv.FormatUint(number, 10) }

// after returns the number of the event that follows the one with an id. For an unknown id or one
// of another process it is that of the first event.
func (h *Hub) after(id string) uint64 {
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch != h.epoch || err != nil || n >= h.next {
		return 1
	}
	return n + 1
}

// since returns the events from a number on. If some of them are not kept any more, the first event
// returned says how many. next is the number to continue with; changed is closed when there are
// more events.
func (h *Hub) since(number uint64) (events []Event, next uint64, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.next - uint64(len(h.events))
	if number < first {
		lost := Event{ID: h.id(first - 1), Time: time.Now(), Type: "lost", Count: first - number}
		lost.text = lost.encode()
		events = append(events, lost)
		number = first
	}
	for ; number < h.next; number++ {
		events = append(events, h.events[(number-1)%maxEvents])
	}
	return events, h.next, h.changed
}

var (
	_ opmanager.Listener         = (*Hub)(nil)
	_ backend.Observer           = (*Hub)(nil)
	_ backend.CheckpointObserver = (*Hub)(nil)
	_ backend.DispatchObserver   = (*Hub)(nil)
	_ backend.HealthObserver     = (*Hub)(nil)
)
