package shards

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/world"
)

const saving = "save a checkpoint"

// Job is a checkpoint that is being written, in parts: the first rank makes the files, all
// ranks write their pieces, and the first rank completes the checkpoint. Each part runs in a
// goroutine, and all ranks call Next after each of them.
type Job struct {
	World *world.World     // the ranks that save
	Ended bool             // there is nothing left to do
	Saved checkpoint.Saved // on the first rank, after the end

	files []File
	check func() error // of what this rank writes, before that; nil for none

	part  savingPart
	ready chan struct{} // closed when this rank has done its part

	// Of the goroutine that writes the pieces of this rank.
	own result
	err error // why this rank could not write its pieces

	// Of the goroutine that saves, on the first rank.
	dir     string // of the unfinished checkpoint
	begun   chan struct{}
	pieces  chan pieces // what all ranks have written
	verdict chan error  // whether the checkpoint is to be completed
	over    chan struct{}
	saveErr error
}

type savingPart int

const (
	beginning savingPart = iota
	writing
	completing
)

// pieces are what all ranks have written of each file.
type pieces struct {
	written [][]checkpoint.Written
	err     error
}

// Save writes a checkpoint with files, of which every rank writes its pieces, and with what add
// adds. Only the first rank has a store and returns what it has saved.
func Save(w *world.World, store *checkpoint.Store, step int64, files []File, add func(*checkpoint.Writer) error) (checkpoint.Saved, error) {
	s := Begin(w, store, step, files, nil, add)
	s.Judge(nil)
	err := s.Wait()
	return s.Saved, err
}

// Begin is Save that returns at once. The checkpoint is complete after Judge(nil) and Wait.
// Until then, the pieces must not change.
func Begin(w *world.World, store *checkpoint.Store, step int64, files []File, check func() error, add func(*checkpoint.Writer) error) *Job {
	s := &Job{World: w, files: files, check: check, verdict: make(chan error, 1), ready: make(chan struct{})}
	if !w.Leads() {
		close(s.ready)
		return s
	}
	s.begun, s.pieces, s.over = make(chan struct{}), make(chan pieces, 1), make(chan struct{})
	if s.ready = s.begun; w.Alone() { // all parts are one
		s.part, s.ready = completing, s.over
	}
	go s.lead(store, step, add)
	return s
}

// lead is the part of the first rank.
func (s *Job) lead(store *checkpoint.Store, step int64, add func(*checkpoint.Writer) error) {
	begin := sync.OnceFunc(func() { close(s.begun) })
	defer close(s.over)
	defer begin()
	defer func() {
		if cause := recover(); cause != nil {
			s.saveErr = fmt.Errorf("BUG: %s: panic: %v\n%s", saving, cause, debug.Stack())
		}
	}()
	s.Saved, s.saveErr = store.Save(step, func(out *checkpoint.Writer) error {
		for _, f := range s.files {
			if err := out.Reserve(f.Name, f.layout); err != nil {
				return err
			}
		}
		s.dir = out.Dir()
		if begin(); s.World.Alone() {
			s.write(s.dir)
			s.pieces <- pieces{s.own.Written, s.err}
		}
		all := <-s.pieces
		if all.err != nil {
			return all.err
		}
		for i, f := range s.files {
			if err := out.Complete(f.Name, f.layout, all.written[i]); err != nil {
				return err
			}
		}
		if err := <-s.verdict; err != nil {
			return err
		}
		return add(out)
	})
}

// Judge says whether the checkpoint is to be completed: an error is a reason not to. Only the first
// call counts.
func (s *Job) Judge(err error) {
	select {
	case s.verdict <- err:
	default:
	}
}

// IsReady reports whether this rank has done its part, so that Next does not wait for it.
func (s *Job) IsReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// Wait advances to the end and returns why there is no checkpoint, nil if there is.
func (s *Job) Wait() error {
	for !s.Ended {
		if err := s.Next(); err != nil {
			return err
		}
	}
	return nil
}

// Next waits until this rank has done its part, and goes on to the next one together with the
// other ranks. It returns why there is no checkpoint.
func (s *Job) Next() error {
	<-s.ready
	err := s.advance()
	if _, lost := errors.AsType[*world.Error](err); lost {
		return errors.Join(err, s.GiveUp())
	}
	return err
}

func (s *Job) advance() error {
	switch s.part {
	case beginning:
		dir, err := s.World.Share(saving, []byte(s.dir))
		if err != nil {
			return err
		}
		if len(dir) == 0 { // the first rank says why
			s.complete()
			return nil
		}
		s.part, s.ready = writing, make(chan struct{})
		go func(done chan struct{}) {
			defer close(done)
			s.write(string(dir))
		}(s.ready)
	case writing:
		all, err := s.gather()
		if _, lost := errors.AsType[*world.Error](err); lost {
			return err
		}
		if s.err = err; s.World.Leads() {
			s.pieces <- pieces{all, err}
		}
		s.complete()
	case completing:
		if s.Ended = true; s.World.Leads() {
			s.err = s.saveErr
		}
		return s.World.Agree(saving, s.err)
	}
	return nil
}

// complete begins the last part.
func (s *Job) complete() {
	if s.part, s.ready = completing, s.over; !s.World.Leads() {
		s.ready = make(chan struct{})
		close(s.ready)
	}
}

// GiveUp ends the parts of this rank without the others. The checkpoint is complete if all ranks
// had written their pieces; otherwise nothing is left of it.
func (s *Job) GiveUp() error {
	if s.Ended {
		return nil
	}
	s.Ended = true
	if s.part == writing {
		<-s.ready
	}
	if !s.World.Leads() {
		return nil
	}
	if s.part != completing {
		s.pieces <- pieces{err: errors.New("the ranks have not written all of it")}
	}
	s.Judge(nil)
	<-s.over
	return s.saveErr
}

// result is what a rank has written of each file.
type result struct {
	Written [][]checkpoint.Written `json:"written"`
	Failure string                 `json:"failure,omitempty"`
}

// write writes the pieces of this rank to files in dir.
func (s *Job) write(dir string) {
	defer func() {
		if cause := recover(); cause != nil {
			s.err = fmt.Errorf("BUG: %s: panic: %v\n%s", saving, cause, debug.Stack())
		}
		if s.err != nil {
			s.own.Failure = s.err.Error()
		}
	}()
	if s.check != nil {
		s.err = s.check()
	}
	for _, f := range s.files {
		var written []checkpoint.Written
		if s.err == nil {
			written, s.err = checkpoint.WritePieces(filepath.Join(dir, f.Name), f.pieces)
		}
		s.own.Written = append(s.own.Written, written)
	}
}

// gather returns what all ranks have written of each file.
func (s *Job) gather() ([][]checkpoint.Written, error) {
	text, err := json.Marshal(s.own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", saving, err)
	}
	texts, err := s.World.Gather(saving, text)
	if err != nil || s.err != nil {
		return nil, errors.Join(err, s.err)
	}
	return written(texts, len(s.files))
}

// written returns what all ranks say that they have written of each file.
func written(texts [][]byte, files int) ([][]checkpoint.Written, error) {
	all := make([][]checkpoint.Written, files)
	for rank, text := range texts {
		var of result
		if err := json.Unmarshal(text, &of); err != nil {
			return nil, fmt.Errorf("%s: rank %d: %w", saving, rank, err)
		}
		if of.Failure != "" {
			return nil, fmt.Errorf("rank %d: %s", rank, of.Failure)
		}
		if len(of.Written) != files {
			return nil, fmt.Errorf("%s: rank %d: given what was written of %d files, want %d", saving, rank, len(of.Written), files)
		}
		for i, pieces := range of.Written {
			all[i] = append(all[i], pieces...)
		}
	}
	return all, nil
}
