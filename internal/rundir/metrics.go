package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
)

// MetricsName is the name of the metrics file in a run directory.
const MetricsName = "metrics.jsonl"

// maxMetrics is the largest metrics file that is read.
const maxMetrics = 4 << 30

// Metrics appends to the metrics file of a run.
type Metrics struct {
	f        *os.File
	path     string
	warnings []string
	broken   error // why the last line of the file may be torn
}

// OpenMetrics opens the metrics file for a run that continues after a step; 0 keeps nothing of a
// run whose first step is 1. Lines of later steps are dropped, and so is a torn last line; the
// lines that stay are kept byte for byte. A line in the middle that is not a record is dropped with
// a warning. The caller closes it.
func (d *Dir) OpenMetrics(step int64) (*Metrics, error) {
	path := d.Path(MetricsName)
	text, err := durable.ReadRegular(path, maxMetrics)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	m := &Metrics{path: path}
	_, kept, warnings := parse(text, step)
	m.warnings = warnings
	if !bytes.Equal(kept, text) {
		err := durable.WriteFile(path, func(w io.Writer) error {
			_, err := w.Write(kept)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("rundir: write %s: %w", MetricsName, err)
		}
	}
	if m.f, err = durable.OpenAppend(path); err != nil {
		return nil, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	if err := durable.SyncDir(d.path); err != nil { // for the name of a new file
		return nil, errors.Join(fmt.Errorf("rundir: flush %s: %w", d.path, err), m.f.Close())
	}
	return m, nil
}

// parse returns the records up to step, their lines, and warnings.
func parse(text []byte, step int64) (records []Record, kept []byte, warnings []string) {
	kept = make([]byte, 0, len(text))
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var r Record
		err := json.Unmarshal(line, &r)
		if err == nil && r.Step < 1 {
			err = fmt.Errorf("given step %d, want 1 or more", r.Step)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: dropped line %d, which is no record: %v", MetricsName, number, err))
			continue
		}
		if r.Step <= step {
			records = append(records, r)
			kept = append(kept, line...)
		}
	}
	return records, kept, warnings
}

// Append writes the line of a step. A number that is not finite is an error, and
// nothing is written. After a failed write, of which the file may hold a part,
// every further Append is the same error.
func (m *Metrics) Append(r Record) error {
	if m.broken != nil {
		return m.broken
	}
	if err := r.check(); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("rundir: encode the record of step %d: %w", r.Step, err)
	}
	if _, err := m.f.Write(append(line, '\n')); err != nil {
		m.broken = fmt.Errorf("rundir: write the record of step %d: %w", r.Step, durable.Explain(err))
		return m.broken
	}
	return nil
}

// Records reads the records of the file, those of earlier runs that OpenMetrics kept included.
func (m *Metrics) Records() ([]Record, error) {
	text, err := durable.ReadRegular(m.path, maxMetrics)
	if err != nil {
		return nil, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	records, _, _ := parse(text, math.MaxInt64)
	return records, nil
}

// ReadRecords reads the records in a directory of a run, which may be training. The steps of a run
// that went on from an earlier checkpoint are there once.
func ReadRecords(dir string) ([]Record, error) {
	text, err := durable.ReadRegular(filepath.Join(dir, MetricsName), maxMetrics)
	if err != nil {
		return nil, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	records, _, _ := parse(text, math.MaxInt64)
	last := int64(0)
	return slices.DeleteFunc(records, func(r Record) bool {
		again := r.Step <= last
		last = max(last, r.Step)
		return again
	}), nil
}

// Warnings describes what was wrong in the file when it was opened.
func (m *Metrics) Warnings() []string { return slices.Clone(m.warnings) }

// Sync flushes the lines to the disk. A kill loses none of them without it, a power cut may.
func (m *Metrics) Sync() error {
	if err := m.f.Sync(); err != nil {
		return fmt.Errorf("rundir: flush %s: %w", MetricsName, durable.Explain(err))
	}
	return nil
}

// Close flushes and closes the file. Further calls do nothing.
func (m *Metrics) Close() error {
	if m.f == nil {
		return nil
	}
	err := errors.Join(m.Sync(), m.f.Close())
	m.f = nil
	return err
}
