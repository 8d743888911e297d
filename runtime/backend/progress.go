package backend

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
)

// Phase is a part of a run that may hang.
type Phase uint8

// The phases of a run.
const (
	PhaseStart      Phase = iota // everything before the first step that is none of the others
	PhaseRendezvous              // waiting for other ranks before the first step
	PhaseData                    // reading text or the next batch
	PhaseForward
	PhaseBackward
	PhaseCollective // exchanging results of a step with other ranks
	PhaseOptimizer
	PhaseEvaluation
	PhaseSave
	phases
)

var phaseNames = [phases]string{"start", "rendezvous", "data", "forward", "backward", "collective", "optimizer", "evaluation", "save"}

// String returns the name of the phase.
func (p Phase) String() string { return phaseNames[p] }

// Phases returns all phases.
func Phases() []Phase {
	all := make([]Phase, phases)
	for i := range all {
		all[i] = Phase(i)
	}
	return all
}

// Progress is where a run is. The goroutine that trains says so, and a watchdog looks. Its methods
// for the trainer do nothing with a nil Progress, and cost no more than a few atomic stores.
type Progress struct {
	watched   atomic.Bool
	phase     atomic.Uint32
	step      atomic.Int64
	since     atomic.Int64 // when the phase began, in nanoseconds after start
	marks     atomic.Int64
	goroutine atomic.Int64 // that trains
	call      OpMark
	paces     [phases]pace
	start     time.Time
	waits     atomic.Pointer[func() string]
}

// kept is how many durations of a phase are kept.
const kept = 31

// pace is how long a phase took lately.
type pace struct {
	last  [kept]atomic.Int64
	count atomic.Int64
}

// NewProgress returns the Progress of a run that has not begun.
func NewProgress() *Progress { return &Progress{start: time.Now()} }

// Begin says that the run begins, on the goroutine that calls.
func (p *Progress) Begin() {
	if p == nil {
		return
	}
	p.goroutine.Store(goroutineID())
	p.phase.Store(uint32(PhaseStart))
	p.since.Store(int64(time.Since(p.start)))
	p.marks.Add(1)
	p.watched.Store(true)
}

// Enter says that a phase begins, in the step with a number, and that the one before has ended. A
// phase of several similar parts may be entered with each of them.
func (p *Progress) Enter(phase Phase, step int) {
	if p == nil || !p.watched.Load() {
		return
	}
	now := int64(time.Since(p.start))
	of := &p.paces[p.phase.Load()]
	of.last[of.count.Load()%kept].Store(now - p.since.Load())
	of.count.Add(1)
	p.phase.Store(uint32(phase))
	p.step.Store(int64(step))
	p.since.Store(now)
	p.marks.Add(1)
}

// End says that the run has ended: nothing can hang any more.
func (p *Progress) End() {
	if p != nil {
		p.watched.Store(false)
		p.marks.Add(1)
	}
}

// Op returns the mark of the op that the goroutine calls, nil for a nil Progress.
func (p *Progress) Op() *OpMark {
	if p == nil {
		return nil
	}
	return &p.call
}

// Waits sets what describes for whom the run waits, "" for nobody. It is called by the watchdog.
func (p *Progress) Waits(f func() string) {
	if p != nil {
		p.waits.Store(&f)
	}
}

// Where is where a run is.
type Where struct {
	Phase Phase
	Step  int
	Op    string // that is called; "" between calls
	Waits string // for whom; "" for nobody

	For       time.Duration // how long the phase has lasted
	Usual     time.Duration // how long it takes; 0 if that is not known
	Marks     int64         // grows with each sign of life
	Goroutine int64         // that trains
}

// Look returns where the run is. It returns false when there is nothing to watch.
func (p *Progress) Look() (Where, bool) {
	if !p.watched.Load() {
		return Where{}, false
	}
	w := Where{
		Phase: Phase(p.phase.Load()), Step: int(p.step.Load()), Op: p.call.Name(), Marks: p.marks.Load(), Goroutine: p.goroutine.Load(),
		For: time.Since(p.start) - time.Duration(p.since.Load()),
	}
	w.Usual = p.paces[w.Phase].usual()
	if f := p.waits.Load(); f != nil {
		w.Waits = (*f)()
	}
	return w, true
}

// usual returns the median of the last durations.
func (p *pace) usual() time.Duration {
	n := int(min(p.count.Load(), kept))
	if n == 0 {
		return 0
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = p.last[i].Load()
	}
	slices.Sort(all)
	return time.Duration(all[n/2])
}

// OpMark is the name of an op that is called. One goroutine sets it, any may read it.
type OpMark struct {
	text   atomic.Pointer[byte]
	length atomic.Int64
}

// Set says which op is called; "" is none. Whoever reads it at this moment may see neither.
func (m *OpMark) Set(name string) {
	if m != nil {
		m.length.Store(0)
		m.text.Store(unsafe.StringData(name))
		m.length.Store(int64(len(name)))
	}
}

// Name returns the op, "" for none.
func (m *OpMark) Name() string {
	n := m.length.Load()
	text := m.text.Load()
	if n == 0 || m.length.Load() != n || m.text.Load() != text {
		return ""
	}
	return strings.Clone(unsafe.String(text, n))
}

// goroutineID returns the number of the goroutine that calls, which stacks of all goroutines show.
func goroutineID() int64 {
	var text [64]byte
	words := strings.Fields(string(text[:runtime.Stack(text[:], false)]))
	id, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		panic("BUG: backend: " + err.Error())
	}
	return id
}
