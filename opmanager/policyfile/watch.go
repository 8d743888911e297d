package policyfile

import (
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"
)

// Interval is how often a Watcher looks at its file.
const Interval = time.Second

// WatchSettings are what a Watcher needs. All fields are required.
type WatchSettings struct {
	// Apply puts an overlay in force and returns the number of the generation that
	// begins with it. When it returns an error, nothing has changed.
	Apply func(*Overlay) (generation uint64, err error)
	// Log hears of every change and of everything that cannot be used.
	Log *slog.Logger
}

// Watcher follows a policy file. It reads the whole content each time, so that it
// notices changes which keep size and time of a file, and files that are replaced
// by renaming.
type Watcher struct {
	file string
	set  WatchSettings

	inForce  fingerprint // of the content that was applied last
	settled  fingerprint // of what the file held when it was last looked into
	pending  fingerprint // of what the last poll found
	rejected map[fingerprint]struct{}

	start, end sync.Once
	stop       chan struct{}
	done       sync.WaitGroup
}

// maxRejected bounds the memory for contents that were reported; beyond it they
// are reported again.
const maxRejected = 1024

// NewWatcher returns a Watcher of the file that an overlay was read from, whose
// content is taken to be in force. It does nothing until Start.
func NewWatcher(inForce *Overlay, set WatchSettings) *Watcher {
	return &Watcher{
		file: inForce.file, set: set,
		inForce: inForce.content, settled: inForce.content, pending: inForce.content,
		rejected: map[fingerprint]struct{}{}, stop: make(chan struct{}),
	}
}

// Start begins to watch; calls after the first one do nothing.
func (w *Watcher) Start() {
	w.start.Do(func() {
		w.done.Go(func() {
			ticker := time.NewTicker(Interval)
			defer ticker.Stop()
			for {
				select {
				case <-w.stop:
					return
				case <-ticker.C:
					w.poll()
				}
			}
		})
	})
}

// Close ends watching and waits for it. It is idempotent and safe without Start.
func (w *Watcher) Close() {
	w.start.Do(func() {})
	w.end.Do(func() { close(w.stop) })
	w.done.Wait()
}

// poll looks at the file once. What is new is left alone until the next poll finds
// it unchanged, because it may be half written.
func (w *Watcher) poll() {
	data, err := readFile(w.file)
	found := sha256.Sum256(data)
	if err != nil {
		found = sha256.Sum256([]byte("unreadable: " + err.Error()))
	}
	standsStill := found == w.pending
	w.pending = found
	if found == w.settled || !standsStill {
		return
	}
	w.settled = found
	if err == nil && found == w.inForce {
		w.set.Log.Info("policy file is again as the policy in force", "file", w.file)
		return
	}
	if err != nil {
		w.keep(err)
		return
	}
	generation, err := w.apply(data)
	if err != nil {
		w.reject(found, err)
		return
	}
	w.inForce = found
	w.set.Log.Info("policy file is in force", "file", w.file, "generation", generation)
}

func (w *Watcher) apply(data []byte) (uint64, error) {
	o, err := Parse(w.file, data)
	if err != nil {
		return 0, err
	}
	return w.set.Apply(o)
}

// reject reports the reason, once for each content.
func (w *Watcher) reject(content fingerprint, reason error) {
	if _, told := w.rejected[content]; told {
		return
	}
	if len(w.rejected) < maxRejected {
		w.rejected[content] = struct{}{}
	}
	w.keep(reason)
}

func (w *Watcher) keep(reason error) {
	w.set.Log.Warn("policy file is not used; the previous policy stays in force", "file", w.file, "reason", reason)
}
