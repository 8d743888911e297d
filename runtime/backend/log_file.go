package backend

import (
	"io"
	"sync"
)

// LogFile is the end of the log that belongs to a run: a writer that passes on to the file that a trainer attaches. What
// is written before is kept and passed on then, so that the file holds the whole log.
type LogFile struct {
	mu     sync.Mutex
	file   io.Writer
	before []byte
}

// mostBefore bounds what is kept for a run that never attaches a file.
const mostBefore = 1 << 20

// Attach sends the log to w from its beginning.
func (l *LogFile) Attach(w io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = w
	_, err := w.Write(l.before)
	l.before = nil
	return err
}

// Detach ends the writing to the attached file.
func (l *LogFile) Detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = nil
}

// Write passes p on, or keeps it until a file is attached.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file.Write(p)
	}
	if len(l.before)+len(p) <= mostBefore {
		l.before = append(l.before, p...)
	}
	return len(p), nil
}

var _ io.Writer = (*LogFile)(nil)
