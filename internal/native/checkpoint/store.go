package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/internal/durable"
)

// DefaultKeep is how many checkpoints a Store keeps unless Settings say otherwise.
const DefaultKeep = 2

const lockName = ".lock"

// PreviousName is the directory below that of a Store to which a save moves directories that are in
// its way and do not belong to the run.
const PreviousName = "previous"

// Settings are the settings of a Store.
type Settings struct {
	// Keep is the number of newest checkpoints of the run that a save leaves; 0 means DefaultKeep.
	Keep int

	// KeepEvery keeps the checkpoints of steps that it divides, KeepBest those with the lowest
	// validation losses. 0 keeps none. The last one that was judged good always stays.
	KeepEvery int64
	KeepBest  int

	// Run names the run that saves. A save removes only checkpoints of the same run.
	Run string

	// Check is called by Latest for each intact checkpoint. It returns a *CorruptError if the files
	// contradict each other. nil checks nothing.
	Check func(*Checkpoint) error
}

// Store is a directory of checkpoints. It belongs to one goroutine.
type Store struct {
	dir  string
	set  Settings
	run  string
	lock *durable.LockFile // nil while the Store is not acquired

	// damaged holds the paths of checkpoints whose files Latest found to be damaged, which do not
	// count as kept checkpoints.
	damaged map[string]bool
}

// NewStore returns the Store at dir, which is created by Acquire or the first Save. It
// touches no file.
func NewStore(dir string, s Settings) (*Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("checkpoint: given an empty directory, want where checkpoints go")
	}
	if s.KeepEvery < 0 || s.KeepBest < 0 {
		return nil, fmt.Errorf("checkpoint: given every %d steps and the best %d to keep, want 0 or more", s.KeepEvery, s.KeepBest)
	}
	if s.Keep < 0 {
		return nil, fmt.Errorf("checkpoint: given %d checkpoints to keep, want 1 or more (0 for %d)", s.Keep, DefaultKeep)
	}
	if s.Keep == 0 {
		s.Keep = DefaultKeep
	}
	return &Store{dir: dir, set: s, run: s.Run, damaged: make(map[string]bool)}, nil
}

// Dir returns the Store's directory.
func (s *Store) Dir() string { return s.dir }

// Run returns the name of the run that saves.
func (s *Store) Run() string { return s.run }

// SetRun changes the name of the run that saves. A run that continues from the checkpoints of a
// Store takes the name in them.
func (s *Store) SetRun(name string) { s.run = name }

// Acquire makes the directory, locks it against other processes until Close, and writes and removes
// a file, so that problems with saving are found at once. If another process holds the lock, the
// error wraps *durable.LockedError.
func (s *Store) Acquire() (warning string, err error) {
	if s.lock != nil {
		return "", nil
	}
	lock, err := s.open()
	if err != nil {
		return "", fmt.Errorf("checkpoint: nothing can be saved in %s: %w", s.dir, err)
	}
	if err := durable.CheckWritable(s.dir); err != nil {
		return "", errors.Join(fmt.Errorf("checkpoint: nothing can be saved in %s: %w", s.dir, err), lock.Unlock())
	}
	s.lock = lock
	return lock.Warning(), nil
}

// open makes the directory and locks it.
func (s *Store) open() (*durable.LockFile, error) {
	if err := durable.MkdirAll(s.dir); err != nil {
		return nil, err
	}
	return durable.Lock(filepath.Join(s.dir, lockName))
}

// Close ends the lock of Acquire. Further calls do nothing.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Unlock()
	s.lock = nil
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Saved describes a finished save.
type Saved struct {
	Path     string   // the checkpoint's directory
	Bytes    int64    // of its files, without the manifest
	Removed  []string // older checkpoints of the run and directories of killed saves
	Kept     []string // new paths of directories that were in the way and do not belong to the run
	Warnings []string // what could not be removed
}

// Save writes a checkpoint with the files that write adds, as the newest one. It replaces a
// checkpoint of the same step and run; anything else with its name is moved to the directory
// PreviousName. If write or the disk fails, or write panics, the Store is unchanged.
func (s *Store) Save(step int64, write func(w *Writer) error) (saved Saved, err error) {
	if step < 0 {
		return saved, fmt.Errorf("checkpoint: given step %d, want 0 or more", step)
	}
	if s.lock == nil {
		lock, err := s.open()
		if err != nil {
			return saved, fmt.Errorf("checkpoint: save step %d: %w", step, err)
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}

	// The directories of killed saves are removed first, since they may fill the disk.
	left, err := RemoveLeftOvers(s.dir)
	if err != nil {
		saved.Warnings = append(saved.Warnings, "remove what a killed save left: "+err.Error())
	}
	saved.Removed = append(saved.Removed, left...)
	existing, err := list(s.dir)
	if err != nil {
		return saved, err
	}
	if err := s.write(step, existing, write, &saved); err != nil {
		return saved, fmt.Errorf("save step %d: %w", step, err)
	}
	s.prune(&saved)
	return saved, nil
}

// RemoveLeftOvers removes the directories of killed saves from that of a Store and returns their
// names. The caller ensures that no process is saving there.
func RemoveLeftOvers(dir string) ([]string, error) { return durable.RemoveTemps(dir, leftOver) }

// leftOver matches the names of directories of killed saves.
var leftOver = regexp.MustCompile(`^step-\d{8,18}` + regexp.QuoteMeta(durable.TempMark) + `[0-9a-z]+$`)

func (s *Store) write(step int64, existing []found, write func(w *Writer) error, saved *Saved) (err error) {
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
	if err := w.finish(manifest{Step: step, Sequence: nextSequence(existing), Run: s.run, Judgement: w.mark.Judgement, ValidLoss: w.mark.ValidLoss}); err != nil {
		return err
	}
	if err := s.clear(target, existing, saved); err != nil {
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

// owns reports whether a checkpoint belongs to the run and can be used, so that a save may remove
// it. It compares the sizes of files only.
func (s *Store) owns(f found) bool {
	if f.err != nil || f.run != s.run || f.link || s.damaged[f.path] {
		return false
	}
	for _, want := range f.files {
		file, err := openFile(f.path, want)
		if err != nil {
			return false
		}
		file.Close()
	}
	return true
}

// clear moves a directory at the path of a new checkpoint out of the way, unless it is a checkpoint
// of the run, which is replaced.
func (s *Store) clear(target string, existing []found, saved *Saved) error {
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range existing {
		if f.path == target && s.owns(f) {
			return nil
		}
	}
	for n := 1; ; n++ {
		dir := filepath.Join(s.dir, PreviousName, strconv.Itoa(n))
		to := filepath.Join(dir, filepath.Base(target))
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := durable.MkdirAll(dir); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		if err := os.Rename(target, to); err != nil {
			return fmt.Errorf("checkpoint: move what is in the way: %w", durable.Explain(err))
		}
		saved.Kept = append(saved.Kept, to)
		return nil
	}
}

// prune removes the run's own checkpoints that the Store does not keep. Checkpoints that are
// damaged, unreadable, of a newer version or of another run stay.
func (s *Store) prune(saved *Saved) {
	all, err := list(s.dir)
	if err != nil {
		saved.Warnings = append(saved.Warnings, "remove old checkpoints: "+err.Error())
		return
	}
	own := slices.DeleteFunc(all, func(f found) bool { return !s.owns(f) })
	stay := s.kept(own)
	for _, f := range own {
		if stay[f.path] {
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
	}
}

func nextSequence(existing []found) uint64 {
	next := uint64(1)
	for _, f := range existing {
		next = max(next, f.sequence+1)
	}
	return next
}

// Latest returns the newest checkpoint of the run, for a resume without a checkpoint named by the
// user. Checkpoints of older versions, which name no run, count as those of the run. Every newer
// one that is damaged is skipped with a warning. One that cannot be read now, or that a newer
// version has written, is an error, because training would silently go back to an earlier one. A
// Store without checkpoints gives an error that matches ErrNone; one whose checkpoints are all
// damaged gives another error, because starting anew would hide the loss; one whose usable
// checkpoints all belong to other runs gives an *OwnerError.
func (s *Store) Latest() (*Checkpoint, []string, error) {
	return s.newest(func(found) bool { return true })
}

// newest is Latest of some checkpoints.
func (s *Store) newest(of func(found) bool) (*Checkpoint, []string, error) {
	existing, err := list(s.dir)
	if err != nil {
		return nil, nil, err
	}
	existing = slices.DeleteFunc(existing, func(f found) bool { return !of(f) })
	if len(existing) == 0 {
		return nil, nil, fmt.Errorf("%w in %s", ErrNone, s.dir)
	}
	var warnings []string
	var damaged error
	other := ""
	for _, f := range existing {
		if f.err == nil && f.run != "" && s.run != "" && f.run != s.run {
			if other == "" {
				other = f.run
			}
			continue
		}
		c, err := openDir(context.Background(), f.path)
		if err == nil && s.set.Check != nil {
			err = s.set.Check(c)
		}
		if err == nil {
			return c, warnings, nil
		}
		if _, isDamaged := errors.AsType[*CorruptError](err); !isDamaged {
			return nil, warnings, err
		}
		s.damaged[f.path] = true
		damaged = errors.Join(damaged, err)
		warnings = append(warnings, fmt.Sprintf("skipped %s: %v", filepath.Base(f.path), err))
	}
	if other != "" {
		return nil, warnings, &OwnerError{Dir: s.dir, Run: other, Own: s.run}
	}
	return nil, warnings, fmt.Errorf("checkpoint: none of the %d checkpoints in %s can be used, remove or repair them to start anew: %w", len(existing), s.dir, damaged)
}

// Steps returns the steps of the checkpoints, newest first, damaged ones included.
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
	return openDir(context.Background(), filepath.Join(s.dir, dirName(step)))
}
