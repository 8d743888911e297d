package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// DefaultKeep is how many checkpoints a Store keeps unless Settings say otherwise.
const DefaultKeep = 2

const lockName = ".lock"

// Settings are the knobs of a Store.
type Settings struct {
	// Keep is the number of newest checkpoints that a save leaves; 0 means
	// DefaultKeep.
	Keep int
}

// Store is a directory of checkpoints. It belongs to one goroutine.
type Store struct {
	dir  string
	keep int

	// damaged holds the paths that Latest found damaged beyond their manifest,
	// so that they do not count as kept checkpoints.
	damaged map[string]bool
}

// NewStore returns the Store at dir, which is created by the first Save. It
// touches no file.
func NewStore(dir string, s Settings) (*Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("checkpoint: got an empty directory, want where checkpoints go")
	}
	if s.Keep < 0 {
		return nil, fmt.Errorf("checkpoint: got %d checkpoints to keep, want 1 or more (0 for %d)", s.Keep, DefaultKeep)
	}
	if s.Keep == 0 {
		s.Keep = DefaultKeep
	}
	return &Store{dir: dir, keep: s.Keep, damaged: make(map[string]bool)}, nil
}

// Dir returns the Store's directory.
func (s *Store) Dir() string { return s.dir }

// Saved describes a finished save.
type Saved struct {
	Path     string   // the checkpoint's directory
	Bytes    int64    // of its files, without the manifest
	Removed  []string // older checkpoints and left-overs of killed saves
	Warnings []string // what could not be removed
}

// Save writes a checkpoint with the files that write adds, as the newest one.
// It replaces a checkpoint of the same step. When write or the disk fails, or
// write panics, the Store is as before.
func (s *Store) Save(step int64, write func(w *Writer) error) (saved Saved, err error) {
	if step < 0 {
		return saved, fmt.Errorf("checkpoint: got step %d, want 0 or more", step)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return saved, fmt.Errorf("checkpoint: save step %d: %w", step, durable.Explain(err))
	}
	if err := durable.SyncDir(filepath.Dir(s.dir)); err != nil {
		return saved, fmt.Errorf("checkpoint: save step %d: %w", step, err)
	}
	lock, err := durable.Lock(filepath.Join(s.dir, lockName))
	if err != nil {
		return saved, fmt.Errorf("checkpoint: save step %d: %w", step, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	// Left-overs go first: they may be what fills the disk.
	left, err := durable.RemoveTemps(s.dir, dirPrefix)
	if err != nil {
		saved.Warnings = append(saved.Warnings, "remove what a killed save left: "+err.Error())
	}
	saved.Removed = append(saved.Removed, left...)
	existing, err := list(s.dir)
	if err != nil {
		return saved, err
	}
	if err := s.write(step, nextSequence(existing), write, &saved); err != nil {
		return saved, fmt.Errorf("save step %d: %w", step, err)
	}
	s.prune(saved.Path, existing, &saved)
	return saved, nil
}

func (s *Store) write(step int64, sequence uint64, write func(w *Writer) error, saved *Saved) (err error) {
	target := filepath.Join(s.dir, dirName(step))
	temp := durable.TempName(target)
	if err := os.Mkdir(temp, 0o755); err != nil {
		return fmt.Errorf("checkpoint: %w", durable.Explain(err))
	}
	published := false
	defer func() {
		if published {
			return
		}
		if removeErr := os.RemoveAll(temp); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("checkpoint: remove the unfinished save: %w", removeErr))
		}
	}()
	w := &Writer{dir: temp}
	defer func() { w.closed = true }()
	if err := write(w); err != nil {
		return err
	}
	if err := w.finish(step, sequence); err != nil {
		return err
	}
	if err := durable.ReplaceDir(temp, target); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	published = true
	delete(s.damaged, target)
	saved.Path = target
	for _, f := range w.files {
		saved.Bytes += f.Size
	}
	return nil
}

// prune removes what was there before the save, except the newest complete
// checkpoints that the Store keeps beside the one just written.
func (s *Store) prune(written string, existing []found, saved *Saved) {
	kept := 1
	for _, f := range existing {
		if f.path == written {
			continue
		}
		if kept < s.keep && f.err == nil && !s.damaged[f.path] {
			kept++
			continue
		}
		// Renamed first: a kill in the middle of the removal must not leave a
		// half-empty directory with the name of a complete one.
		temp := durable.TempName(f.path)
		err := os.Rename(f.path, temp)
		if err == nil {
			err = os.RemoveAll(temp)
		}
		if err != nil {
			saved.Warnings = append(saved.Warnings, "remove an old checkpoint: "+err.Error())
			continue
		}
		saved.Removed = append(saved.Removed, filepath.Base(f.path))
		delete(s.damaged, f.path)
	}
}

func nextSequence(existing []found) uint64 {
	next := uint64(1)
	for _, f := range existing {
		next = max(next, f.sequence+1)
	}
	return next
}

// Latest returns the newest checkpoint that is intact, for a resume without a
// checkpoint named by the user. Every newer one that it had to skip gives a
// warning. A Store without checkpoints gives an error that matches ErrNone; one
// whose checkpoints are all damaged gives another error, because starting anew
// would hide the loss.
func (s *Store) Latest() (*Checkpoint, []string, error) {
	existing, err := list(s.dir)
	if err != nil {
		return nil, nil, err
	}
	if len(existing) == 0 {
		return nil, nil, fmt.Errorf("%w in %s", ErrNone, s.dir)
	}
	var warnings []string
	var problems error
	for _, f := range existing {
		c, err := openDir(f.path)
		if err == nil {
			return c, warnings, nil
		}
		s.damaged[f.path] = true
		problems = errors.Join(problems, err)
		warnings = append(warnings, fmt.Sprintf("skipped %s: %v", filepath.Base(f.path), err))
	}
	return nil, warnings, fmt.Errorf("checkpoint: none of the %d checkpoints in %s can be used, remove or repair them to start anew: %w", len(existing), s.dir, problems)
}

// Steps returns the steps of the checkpoints, newest first, damaged ones
// included.
func (s *Store) Steps() ([]int64, error) {
	existing, err := list(s.dir)
	if err != nil {
		return nil, err
	}
	steps := make([]int64, len(existing))
	for i, f := range existing {
		steps[i] = f.step
	}
	return steps, nil
}

// Open verifies and opens the checkpoint of one step.
func (s *Store) Open(step int64) (*Checkpoint, error) {
	return openDir(filepath.Join(s.dir, dirName(step)))
}
