package tensorboard

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scalar is a value with a name. Slashes in the name separate groups, as in train/loss. The value
// is stored as float32.
type Scalar struct {
	Tag   string
	Value float64
}

// Writer writes an event file.
type Writer struct {
	f      *os.File
	broken error // why the file may be torn
}

// Create makes an event file for a session that starts at a step, and its directory if that does
// not exist. The caller closes it.
func Create(dir string, step int64) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	now := time.Now()
	// TensorBoard reads files in the order of their names, which must be that of the sessions.
	name := fmt.Sprintf("events.out.tfevents.%010d.%09d.%s.%d", now.Unix(), now.Nanosecond(), host, os.Getpid())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	w := &Writer{f: f}
	start := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart)
	for _, data := range [][]byte{
		appendField(event(now, 0), eventFileVersion, []byte("brain.Event:2")),
		appendField(event(now, step), eventSessionLog, start),
	} {
		if err := w.write(data); err != nil {
			_ = f.Close() // the error of the write is returned
			return nil, err
		}
	}
	return w, nil
}

// Scalars writes the values of a step with the present time. They are in the file when it returns.
func (w *Writer) Scalars(step int64, scalars ...Scalar) error {
	return w.write(appendField(event(time.Now(), step), eventSummary, summary(scalars)))
}

func (w *Writer) write(data []byte) error {
	if w.broken != nil {
		return w.broken
	}
	if _, err := w.f.Write(record(data)); err != nil {
		w.broken = fmt.Errorf("tensorboard: %w", err)
	}
	return w.broken
}

// Close closes the file. Further calls do nothing.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	if err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}
