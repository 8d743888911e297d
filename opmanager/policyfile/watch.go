package policyfile

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
)

// Interval is how often a Watcher reads its file.
const Interval = time.Second

// WatchSettings are what a Watcher needs. Manager and Log are required.
type WatchSettings struct {
	// Manager is the one whose policy has the file as its layer of kind opmanager.LayerFile.
	Manager *opmanager.Manager
	// Log receives every change, the names in it that are not known, and every content that cannot
	// be used.
	Log *slog.Logger
	// Changed is called with every layer that has come into force.
	Changed func(*Layer)
}

// Watcher follows a policy file. It reads the whole content each time, so that it notices a change
// that keeps the size and time of the file, and a file that is replaced by renaming.
type Watcher struct {
	file string
	set  WatchSettings

	settled  fingerprint // of the last content read
	pending  fingerprint // result of the last poll
	rejected map[fingerprint]struct{}

	start  sync.Once
	cancel context.CancelFunc // nil without Start
	done   sync.WaitGroup
}

// maxRejected bounds the memory for rejected contents; when it is full, they may be reported again.
const maxRejected = 1024

// fingerprint identifies the content of a file.
type fingerprint [sha256.Size]byte

// NewWatcher returns a Watcher of the file that a layer was read from, which is in force already.
// The Watcher does nothing until Start.
func NewWatcher(inForce *Layer, set WatchSettings) *Watcher {
	content := fingerprint(sha256.Sum256([]byte(inForce.Text)))
	return &Watcher{
		file: inForce.Origin, set: set, settled: content, pending: content,
		rejected: map[fingerprint]struct{}{},
	}
}

// Start starts the Watcher; further calls do nothing.
func (w *Watcher) Start() {
	w.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		w.done.Go(func() {
			ticker := time.NewTicker(Interval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					w.poll(ctx)
				}
			}
		})
	})
}

// Close ends the Watcher and waits for its goroutine. It is idempotent and safe without Start.
func (w *Watcher) Close() {
	w.start.Do(func() {})
	if w.cancel != nil {
		w.cancel()
	}
	w.done.Wait()
}

// poll reads the file once. New content is used only when the next poll finds it unchanged, because
// it may be half written.
func (w *Watcher) poll(ctx context.Context) {
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
	if err == nil && w.inForce(data) {
		w.set.Log.Info("policy file has the content of the current policy again", "file", w.file)
		return
	}
	if err != nil {
		w.keep(err)
		return
	}
	generation, err := w.apply(ctx, data)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.reject(found, err)
		return
	}
	w.set.Log.Info("policy file is in force", "file", w.file, "generation", generation)
}

// inForce reports whether the policy has this content of the file.
func (w *Watcher) inForce(data []byte) bool {
	now := w.set.Manager.PolicyStack().State().Layers[opmanager.LayerFile]
	return now.Origin == w.file && now.Text == string(data)
}

// apply puts the content of the file in force.
func (w *Watcher) apply(ctx context.Context, data []byte) (uint64, error) {
	l, err := Parse(ctx, w.file, data)
	if err != nil {
		return 0, err
	}
	generation, err := w.set.Manager.PolicyStack().Set(opmanager.LayerFile, l.PolicyLayer)
	if err != nil {
		return 0, err
	}
	for _, warning := range w.set.Manager.Warnings() {
		w.set.Log.Warn(warning)
	}
	if w.set.Changed != nil {
		w.set.Changed(l)
	}
	return generation, nil
}

// reject logs the reason, once for each content.
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
