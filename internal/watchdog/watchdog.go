package watchdog

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
)

// patience is how many times as long as usual a phase may take.
const patience = 10

// Settings are the settings of Start.
type Settings struct {
	Progress *backend.Progress
	Floor    time.Duration // no phase hangs before it has lasted so long
	Observer backend.StallObserver
	Log      *slog.Logger

	// Impl returns the impl that serves calls of an op, "" if none is known.
	Impl func(op string) string

	// Recent lists what the run has exchanged with others lately, "" for nothing.
	Recent func() string

	// Abort ends the process, for the reason that is given. It is called when the run has not gone on
	// for Wait after it was found to hang. Nil means that the run may hang for ever.
	Abort func(why string)
	Wait  time.Duration
}

// checks is how often the run is looked at while the floor passes.
const checks = 20

// Start looks at a run until the function that it returns is called. With a floor of 0 it does
// nothing.
func Start(s Settings) (stop func()) {
	if s.Floor <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx, s)
	}()
	return func() {
		cancel()
		<-done
	}
}

func watch(ctx context.Context, s Settings) {
	tick := time.NewTicker(min(max(s.Floor/checks, time.Millisecond), time.Second))
	defer tick.Stop()
	w := watcher{Settings: s}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.check(s.Progress.Look())
		}
	}
}

// watcher is what was seen of a run.
type watcher struct {
	Settings
	stalled bool          // the run hangs
	marks   int64         // when it was found to hang
	since   time.Duration // how long its phase had lasted then
	text    string
}

// check judges where the run is.
func (w *watcher) check(at backend.Where, running bool) {
	switch {
	case w.stalled && (!running || at.Marks != w.marks):
		w.stalled = false
		w.Observer.Resumed()
		w.Log.Warn("the run goes on: it did not hang any more", "event", "resumed")
	case w.stalled:
		if w.Abort != nil && at.For >= w.since+w.Wait {
			w.Abort(w.text)
			w.Abort = nil
		}
	case running && at.For > limit(w.Floor, at.Usual):
		w.found(at)
	}
}

// limit is how long a phase may last.
func limit(floor, usual time.Duration) time.Duration { return max(floor, patience*usual) }

// found reports a run that hangs.
func (w *watcher) found(at backend.Where) {
	w.stalled, w.marks, w.since, w.text = true, at.Marks, at.For, w.describe(at)
	next := "it is not ended (--on-hang warn)"
	if w.Abort != nil {
		next = fmt.Sprintf("it is ended with exit code 3 in %v unless it goes on (--on-hang abort)", w.Wait)
	}
	about := []any{"event", "stalled", "phase", at.Phase.String(), "step", at.Step, "stack", Stack(at.Goroutine)}
	if w.Recent != nil {
		if recent := w.Recent(); recent != "" {
			about = append(about, "collectives", recent)
		}
	}
	// Who reads the line finds the run stalled.
	w.Observer.Stalled(backend.Stall{Phase: at.Phase, Step: at.Step, For: at.For, Text: w.text})
	w.Log.Error(w.text+"; "+next, about...)
}

// describe says where a run hangs.
func (w *watcher) describe(at backend.Where) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the run hangs in phase %s", at.Phase)
	if at.Step > 0 {
		fmt.Fprintf(&b, " of step %d", at.Step)
	}
	fmt.Fprintf(&b, ", for %v", at.For.Round(time.Millisecond))
	if at.Usual > 0 {
		fmt.Fprintf(&b, " (usually %v)", at.Usual.Round(time.Microsecond))
	}
	if at.Op != "" {
		fmt.Fprintf(&b, ", in op %s", at.Op)
		if impl := w.Impl(at.Op); impl != "" {
			fmt.Fprintf(&b, " on %s", impl)
		}
	}
	if at.Waits != "" {
		fmt.Fprintf(&b, ", %s", at.Waits)
	}
	return b.String()
}

// maxStacks is the size of the stacks of all goroutines that are looked at.
const maxStacks = 4 << 20

// Stack returns the stack of a goroutine.
func Stack(id int64) string {
	for _, one := range Stacks() {
		if bytes.HasPrefix(one, fmt.Appendf(nil, "goroutine %d ", id)) {
			return string(one)
		}
	}
	return fmt.Sprintf("goroutine %d has ended", id)
}

// Stacks returns the stacks of all goroutines.
func Stacks() [][]byte {
	text := make([]byte, maxStacks)
	return bytes.Split(text[:runtime.Stack(text, true)], []byte("\n\n"))
}
