package serve

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/runs"
)

// Event is something that happened in a run.
type Event struct {
	ID         string      `json:"id"`
	Time       time.Time   `json:"time"`
	Type       string      `json:"type" doc:"registered, selected, switched, fell_back, failed, declined, quarantined, released, policy_changed, verification_failed, run_started, step, checkpoint_saved, run_ended or lost"`
	Op         string      `json:"op,omitempty"`
	Impl       string      `json:"impl_id,omitempty" doc:"the impl that it is about, or that serves calls now"`
	From       string      `json:"from,omitempty" doc:"the impl that served calls before, or should have"`
	Rules      string      `json:"rules,omitempty"`
	Cause      string      `json:"cause,omitempty"`
	Until      string      `json:"until,omitempty" doc:"end of a quarantine"`
	Generation uint64      `json:"generation,omitempty"`
	Count      uint64      `json:"count,omitempty" doc:"of failed, declined and fell_back how many there were since the last such event; of lost how many events this client has missed"`
	Step       *runs.Point `json:"step,omitempty"`
	Run        string      `json:"run,omitempty"`
	Checkpoint int         `json:"checkpoint,omitempty" doc:"the step of a checkpoint that was saved"`

	text []byte // of the event in a stream
}

const (
	maxEvents = 1024 // that a Hub keeps

	// repeatEvery and stepEvery are the shortest times between two events that only say that something
	// goes on.
	repeatEvery = time.Second
	stepEvery   = 200 * time.Millisecond
)

// Hub keeps the latest events and tells those who wait for more. It never waits for them: who falls
// behind what is kept is told how much was lost. It is a listener of an op manager and an observer
// of training; what else observes the run is told before it, so that whoever hears of an event
// finds the state that follows from it.
type Hub struct {
	epoch string // tells the ids of this process from those of another

	mu       sync.Mutex
	events   []Event // the one with number n at n mod maxEvents
	next     uint64  // number of the next event; the first is 1
	news     uint64  // events that do not only say that something goes on
	changed  chan struct{}
	repeats  map[repeat]*repeated
	lastStep time.Time
}

// repeat names what may happen in every call.
type repeat struct{ kind, op, from, to string }

type repeated struct {
	told  time.Time
	count uint64
}

// NewHub returns a Hub without events.
func NewHub() *Hub {
	return &Hub{epoch: strconv.FormatInt(time.Now().UnixNano(), 36), next: 1, changed: make(chan struct{}), repeats: map[repeat]*repeated{}}
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
		h.add(Event{Type: "quarantined", Op: e.Op, Impl: e.Impl.ID, Cause: e.Cause.Error(), Until: e.Until.Format(time.RFC3339), Count: uint64(e.Failures)})
	case opmanager.Released:
		h.add(Event{Type: "released", Op: e.Op, Impl: e.Impl.ID})
	case opmanager.PolicyChanged:
		h.add(Event{Type: "policy_changed", Generation: e.Generation})
	case opmanager.VerificationFailed:
		h.addRepeated(Event{Type: "verification_failed", Op: e.Op, Impl: e.Impl.ID, Cause: "operand " + e.Operand + " " + cmp.Or(e.UnexpectedWrite, "differs from the result of the reference")})
	}
}

func (h *Hub) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.news++
	h.addLocked(e)
}

func (h *Hub) addLocked(e Event) {
	e.Time, e.ID = time.Now(), h.id(h.next)
	e.text = e.encode()
	if len(h.events) < maxEvents {
		h.events = append(h.events, Event{})
	}
	h.events[(h.next-1)%maxEvents] = e
	h.next++
	close(h.changed)
	h.changed = make(chan struct{})
}

// addRepeated keeps the first of several equal events at once, and of the others one each
// repeatEvery with their number.
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
	if now := time.Now(); now.Sub(r.told) >= repeatEvery {
		e.Count, r.count, r.told = r.count, 0, now
		h.addLocked(e)
	}
}

// RunStarted keeps the beginning of a run.
func (h *Hub) RunStarted(r backend.Run) { h.add(Event{Type: "run_started", Run: r.Name}) }

// CheckpointSaved keeps the step of a checkpoint.
func (h *Hub) CheckpointSaved(step int) { h.add(Event{Type: "checkpoint_saved", Checkpoint: step}) }

// RunEnded keeps the end of a run.
func (h *Hub) RunEnded(r backend.Result) { h.add(Event{Type: "run_ended", Run: r.Name}) }

// StepDone keeps a step of training, one each stepEvery.
func (h *Hub) StepDone(s backend.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.lastStep) >= stepEvery {
		h.lastStep = now
		p := runs.PointOf(s)
		h.addLocked(Event{Type: "step", Step: &p})
	}
}

// told returns how many events there were that do not only say that something goes on.
func (h *Hub) told() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news
}

func (h *Hub) id(number uint64) string { return h.epoch + "-" + strconv.FormatUint(number, 10) }

// after returns the number of the event behind the one with an id: the first one for an id of
// another process, or none.
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

// since returns the events from a number on, after one that tells how many of them are not kept any
// more, if any. It returns the number to go on with and what is closed when there is more.
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
)
