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
	"slices"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// MetricsName is the name of the metrics file in a run directory.
const MetricsName = "metrics.jsonl"

// metrics is the metrics file of a run.
type metrics struct {
	path    string
	f       *os.File // nil before the file was opened and after it was closed
	closed  bool
	records []Record
	broken  error // why the last line of the file may be torn
}

// Truncate prepares the metrics file for a run that continues after a step; 0
// keeps nothing of a run whose first step is 1. Lines of later steps are dropped,
// and so is a torn last line; the lines that stay are kept byte for byte. A line
// in the middle that is no record is dropped with a warning.
func (d *Dir) Truncate(step int) error {
	warnings, err := d.metrics.open(step)
	d.warn(warnings...)
	return err
}

// Append writes the line of a step. A number that is not finite is an error, and
// nothing is written. Without a Truncate before, the line goes behind all whole
// lines of the file. After a failed write, of which the file may hold a part,
// every further Append is the same error.
func (d *Dir) Append(r Record) error {
	if d.metrics.f == nil {
		if err := d.Truncate(math.MaxInt); err != nil {
			return err
		}
	}
	return d.metrics.append(r)
}

// Records returns a copy of the records in the metrics file, those of earlier
// runs that Truncate kept included.
func (d *Dir) Records() []Record { return slices.Clone(d.metrics.records) }

// Sync flushes the metrics to the disk. A kill loses no line without it, a power
// cut may.
func (d *Dir) Sync() error { return d.metrics.sync() }

func (m *metrics) open(step int) (warnings []string, err error) {
	if m.closed {
		return nil, fmt.Errorf("rundir: %s: the run directory is closed", MetricsName)
	}
	text, err := os.ReadFile(m.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	records, kept, warnings := parse(text, step)
	if !bytes.Equal(kept, text) {
		err := durable.WriteFile(m.path, func(w io.Writer) error {
			_, err := w.Write(kept)
			return err
		})
		if err != nil {
			return warnings, fmt.Errorf("rundir: write %s: %w", MetricsName, err)
		}
	}
	f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return warnings, fmt.Errorf("rundir: %w", durable.Explain(err))
	}
	if m.f != nil {
		err = m.f.Close()
	}
	m.f, m.records, m.broken = f, records, nil
	return warnings, err
}

// parse returns the records up to step, the lines that hold them, and what was
// odd.
func parse(text []byte, step int) (records []Record, kept []byte, warnings []string) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
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

func (m *metrics) append(r Record) error {
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
	m.records = append(m.records, r)
	return nil
}

func (m *metrics) sync() error {
	if m.f == nil {
		return nil
	}
	if err := m.f.Sync(); err != nil {
		return fmt.Errorf("rundir: flush %s: %w", MetricsName, durable.Explain(err))
	}
	return nil
}

func (m *metrics) close() error {
	m.closed = true
	if m.f == nil {
		return nil
	}
	err := errors.Join(m.sync(), m.f.Close())
	m.f = nil
	return err
}
