package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/runtime/backend"
)

// record is the content of run.json.
type record struct {
	Run
	Impls []Use `json:"impls"`
}

// recordEvery is the interval at which the record of a run is written.
const recordEvery = 15 * time.Second

// Recorder writes the state of a Board to the run directory: at the start of the run, at regular
// intervals, which shows that the process is alive, after each checkpoint, and at the end. It
// observes the trainer and must be called after the Board.
type Recorder struct {
	board *Board
	log   *slog.Logger

	save  chan struct{}
	end   chan struct{}
	ended chan struct{} // nil if there is no run to record
}

// NewRecorder returns a Recorder for the runs of a Board.
func NewRecorder(b *Board, log *slog.Logger) *Recorder { return &Recorder{board: b, log: log} }

// RunStarted starts recording. If no steps are left to train, it keeps the record of the earlier
// training.
func (r *Recorder) RunStarted(run backend.Run) {
	if run.Dir == "" || run.FirstStep > run.Steps {
		return
	}
	r.save, r.end, r.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go r.keep()
}

// keep writes the record until the run ends.
func (r *Recorder) keep() {
	defer close(r.ended)
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	failed := false
	for {
		err := r.write()
		if err != nil && !failed {
			r.log.Warn(fmt.Sprintf("%s is not up to date, so that primus serve --run shows an older state: %v", rundir.RunFileName, err))
		}
		failed = err != nil
		select {
		case <-r.save:
		case <-tick.C:
		case <-r.end:
			return
		}
	}
}

// StepDone does nothing, since the metrics of the run hold the steps.
func (r *Recorder) StepDone(backend.Step) {}

// CheckpointSaved writes the record soon.
func (r *Recorder) CheckpointSaved(int) {
	select {
	case r.save <- struct{}{}:
	default: // a write is already pending, or no run has begun
	}
}

// Judged writes the record soon.
func (r *Recorder) Judged(backend.Judgement) { r.CheckpointSaved(0) }

// RunEnded writes the record for the last time.
func (r *Recorder) RunEnded(backend.Result) {
	if r.ended == nil {
		return
	}
	close(r.end)
	<-r.ended
	r.ended = nil
	if err := r.write(); err != nil {
		r.log.Warn(fmt.Sprintf("the end of the run is not recorded in %s: %v", rundir.RunFileName, err))
	}
}

func (r *Recorder) write() error {
	run, ok := r.board.current()
	if !ok {
		return nil
	}
	impls := r.board.uses()
	run.count(impls)
	text, err := json.MarshalIndent(record{run, impls}, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(run.Dir, rundir.RunFileName), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// maxRecord bounds what is read of a record.
const maxRecord = 4 << 20

// maxSilence is the age of a record after which the process of its run counts as gone.
const maxSilence = 4 * recordEvery

// readRecord returns the record in a directory and the time at which it was written.
func readRecord(dir string) (rec record, at time.Time, err error) {
	path := filepath.Join(dir, rundir.RunFileName)
	info, err := os.Stat(path)
	if err != nil {
		return record{}, time.Time{}, err
	}
	text, err := durable.ReadRegular(path, maxRecord)
	if err != nil {
		return record{}, time.Time{}, err
	}
	if err := json.Unmarshal(text, &rec); err != nil {
		return record{}, time.Time{}, fmt.Errorf("%s: %w", path, err)
	}
	return rec, info.ModTime(), nil
}

var (
	_ backend.Observer           = (*Recorder)(nil)
	_ backend.CheckpointObserver = (*Recorder)(nil)
	_ backend.HealthObserver     = (*Recorder)(nil)
)
