package runs

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/rundir"
)

// metricsFile holds the content of a metrics file, which grows during its run.
type metricsFile struct {
	curve   curve
	last    *rundir.Record
	valid   *float64 // of the last evaluation
	changed time.Time

	info   os.FileInfo // that of the file when it was read
	offset int64       // the first byte that was not read
}

// maxLine bounds the length of a record.
const maxLine = 64 << 10

// read reads what was appended to the file since the last time, or all of it if the file was
// replaced or became shorter. It skips lines that are not records and steps that are not larger
// than the ones before. If the file cannot be read, nothing changes.
func (m *metricsFile) read(path string) {
	info, err := os.Stat(path)
	if err != nil || m.info != nil && os.SameFile(m.info, info) && info.Size() == m.offset {
		return
	}
	f, err := durable.OpenRegular(path)
	if err != nil {
		return
	}
	defer f.Close() // it was only read
	if m.info == nil || !os.SameFile(m.info, info) || info.Size() < m.offset {
		*m = metricsFile{}
	}
	m.info, m.changed = info, info.ModTime()
	if _, err := f.Seek(m.offset, io.SeekStart); err != nil {
		return
	}
	lines := bufio.NewReaderSize(f, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // the line is incomplete
		}
		m.offset += int64(len(line))
		var r rundir.Record
		if err == nil && json.Unmarshal(line, &r) == nil {
			m.add(r)
		}
	}
}

func (m *metricsFile) add(r rundir.Record) {
	if m.last != nil && r.Step <= m.last.Step {
		return
	}
	m.last = &r
	p := pointOf(r)
	if r.ValidLoss != nil {
		m.valid = p.ValidLoss
	}
	m.curve.add(p)
}

// readEnd returns the end of a file, and whether the file is longer.
func readEnd(path string) (text []byte, cut bool, err error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, info.Size()-maxTail)
	text, err = io.ReadAll(io.NewSectionReader(f, from, maxTail))
	return text, from > 0, err
}
