package recording

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/finite"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Choice says which calls of an op a Recorder keeps. Those that several fields choose are kept
// once.
type Choice struct {
	First  int  // this many of each op, layer and phase
	Every  int  // each call whose number is a multiple of it, over all steps
	Step   int  // those of this step
	Faults bool // those that fail, and those with a result that is not finite
}

// ParseChoice reads a comma list of first:N, every:N, step:N and faults.
func ParseChoice(text string) (c Choice, err error) {
	for word := range strings.SplitSeq(text, ",") {
		name, number, given := strings.Cut(strings.TrimSpace(word), ":")
		if name == "faults" && !given {
			c.Faults = true
			continue
		}
		into := map[string]*int{"first": &c.First, "every": &c.Every, "step": &c.Step}[name]
		n, err := strconv.Atoi(number)
		if into == nil || err != nil || n < 1 {
			return c, fmt.Errorf("given %q, want first:N, every:N, step:N with a number N >= 1, or faults, with commas between them", text)
		}
		*into = n
	}
	return c, nil
}

// Settings say what a Recorder keeps.
type Settings struct {
	Dir      string
	Ops      []string // patterns of names, in which * stands for any letters
	Layers   []int    // only calls of these layers; nil for all, and those outside of layers
	Choice   Choice
	MaxBytes int64 // of all files; 0 means no limit
	Log      *slog.Logger
}

// Recorder writes calls to files. It is an opmanager.Tap.
type Recorder struct {
	set Settings

	mu      sync.Mutex
	step    int
	seen    map[key]int    // calls by place
	all     map[string]int // calls by op
	inStep  map[string]int // calls of the current step by op
	refused map[string]bool
	kept    int // calls that were chosen
	bytes   int64
	full    bool

	queue   chan *Call
	written sync.WaitGroup

	// Of the goroutine that writes; read after written.
	files int
	fault error
}

type key struct {
	op    string
	layer int
	phase oppolicy.Phase
}

// queued bounds the calls that wait to be written. A run whose disk is slower waits for it.
const queued = 4

// NewRecorder creates the directory, which must not hold calls yet. Close ends the Recorder.
func NewRecorder(set Settings) (*Recorder, error) {
	for _, pattern := range set.Ops {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, fmt.Errorf("given %q, want names of ops in which * stands for any letters", pattern)
		}
	}
	if err := os.MkdirAll(set.Dir, 0o755); err != nil {
		return nil, err
	}
	if found, _ := filepath.Glob(filepath.Join(set.Dir, "*"+Extension)); len(found) > 0 {
		return nil, fmt.Errorf("%s holds recorded calls already: give another directory, or remove them", set.Dir)
	}
	if err := durable.CheckWritable(set.Dir); err != nil {
		return nil, err
	}
	r := &Recorder{set: set, step: 1, seen: map[key]int{}, all: map[string]int{}, inStep: map[string]int{}, refused: map[string]bool{}, queue: make(chan *Call, queued)}
	r.written.Go(r.write)
	return r, nil
}

// SetStep says which step the calls that follow belong to.
func (r *Recorder) SetStep(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
	clear(r.inStep)
}

// Begin implements opmanager.Tap.
func (r *Recorder) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	site, why := r.choose(call)
	if why == "" {
		return nil
	}
	c, err := Take(call, site)
	if err != nil {
		r.refuse(call.Op.Name(), err)
		return nil
	}
	return func(served opmanager.ImplInfo, fault error) error {
		if why == faults {
			if why = r.faultOf(c, call, fault); why == "" {
				return nil
			}
		}
		c.Why = why
		if err := c.end(call.Args, served, fault); err != nil {
			r.refuse(call.Op.Name(), err)
			return nil
		}
		r.keep(c)
		return nil
	}
}

// faults is the reason to copy a call that is kept if it turns out to be wrong.
const faults = "faults"

// choose returns where a call is made and why it is kept, "" if it is not.
func (r *Recorder) choose(call opmanager.TappedCall) (site Site, why string) {
	name := call.Op.Name()
	if !slices.ContainsFunc(r.set.Ops, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
		return site, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full || r.refused[name] {
		return site, ""
	}
	place := key{name, call.Layer, call.Phase}
	r.seen[place]++
	r.all[name]++
	r.inStep[name]++
	site = Site{Step: r.step, Number: r.inStep[name], Layer: call.Layer, Phase: call.Phase}
	if r.set.Layers != nil && !slices.Contains(r.set.Layers, call.Layer) {
		return site, ""
	}
	switch want := r.set.Choice; {
	case r.seen[place] <= want.First:
		return site, fmt.Sprintf("call %d of the first %d", r.seen[place], want.First)
	case want.Every > 0 && r.all[name]%want.Every == 0:
		return site, fmt.Sprintf("call %d of the op, one in %d", r.all[name], want.Every)
	case want.Step > 0 && r.step == want.Step:
		return site, fmt.Sprintf("step %d", want.Step)
	case want.Faults:
		return site, faults
	}
	return site, ""
}

// faultOf says what is wrong with the result of a call, "" if nothing is, or if the call read a
// value that is not finite and another call is kept already.
func (r *Recorder) faultOf(c *Call, call opmanager.TappedCall, fault error) string {
	if fault != nil {
		return "it failed"
	}
	found := finite.First(call.Args, call.Pool)
	if found == nil {
		return ""
	}
	before, err := c.Arguments()
	if err != nil {
		return found.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept > 0 && finite.FirstRead(before, call.Pool) != nil {
		return ""
	}
	return found.String()
}

// refuse notes that calls of an op cannot be kept.
func (r *Recorder) refuse(op string, err error) {
	r.mu.Lock()
	first := !r.refused[op]
	r.refused[op] = true
	r.mu.Unlock()
	if first {
		r.set.Log.Warn(fmt.Sprintf("calls are not recorded: %v", err))
	}
}

// keep hands a call to the goroutine that writes.
func (r *Recorder) keep(c *Call) {
	r.mu.Lock()
	size := c.Bytes()
	if r.full || r.set.MaxBytes > 0 && r.bytes+size > r.set.MaxBytes {
		first := !r.full
		r.full = true
		r.mu.Unlock()
		if first {
			r.set.Log.Warn(fmt.Sprintf("no more calls are recorded: %s holds %d calls of %d bytes, and the limit is %d", r.set.Dir, r.kept, r.bytes, r.set.MaxBytes))
		}
		return
	}
	r.kept++
	r.bytes += size
	c.File = filepath.Join(r.set.Dir, fmt.Sprintf("%06d-%s%s", r.kept, c.Op.Name(), Extension))
	c.Primus, c.Machine = buildinfo.Version(), cpufeat.Class(true)
	r.mu.Unlock()
	r.queue <- c
}

// write writes calls until the queue is closed. After an error it only empties the queue.
func (r *Recorder) write() {
	for c := range r.queue {
		if r.fault == nil {
			if r.fault = c.Write(c.File); r.fault == nil {
				r.files++
				continue
			}
			r.mu.Lock()
			r.full = true
			r.mu.Unlock()
			r.set.Log.Warn(fmt.Sprintf("no more calls are recorded: %v", durable.Explain(r.fault)))
		}
	}
}

// Close waits until all files are written. No call may begin after it. It returns how many calls
// were written, and the error of the first that could not be written.
func (r *Recorder) Close() (kept int, err error) {
	close(r.queue)
	r.written.Wait()
	if r.fault != nil {
		err = errors.Join(errors.New("recorded calls are incomplete"), r.fault)
	}
	return r.files, err
}
