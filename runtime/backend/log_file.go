package backend

import (
	"io"
	"sync"
)

// LogFile is a writer that writes to the file that a trainer attaches. It keeps what is written
// before that and writes it to the file when it is attached, so that the file holds the whole log.
type LogFile struct {
	mu     sync.Mutex
	file   io.Writer
	before []byte
}

// maxBefore bounds the text that is kept until a file is attached.
const maxBefore = 1 << 20

// Attach writes the log to w, from its beginning.
func (l *LogFile) Attach(w io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = w
	_, err := w.Write(l.before)
	l.before = nil
	return err
}

// Detach stops writing to the attached file.
func (l *LogFile) Detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = nil
}

// Write writes p to the attached file, or keeps it until a file is attached.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file.Write(p)
	}
	if len(l.before)+len(p) <= maxBefore {
		l.before = append(l.before, p...)
	}
	return len(p), nil
}

var _ io.Writer = (*LogFile)(nil)
