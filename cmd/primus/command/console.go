package command

import (
	"io"
	"sync"
)

// console is the terminal that log lines and a status line share. The status line stays below everything that is written.
type console struct {
	out   io.Writer
	width func() int // nil without a terminal, which has no status line

	mu     sync.Mutex
	status string
}

// eraseRest empties the line from where the cursor is, and eraseLine the whole line.
const (
	eraseRest = "\x1b[K"
	eraseLine = "\r" + eraseRest
)

// Write prints whole lines above the status line.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == "" {
		return c.out.Write(p)
	}
	// One write, so that nobody who writes to the terminal besides comes between.
	if _, err := io.WriteString(c.out, eraseLine+string(p)+c.status); err != nil {
		return 0, err
	}
	return len(p), nil
}

// setStatus replaces the status line; "" removes it. What does not fit into the width is cut, so that it stays one line.
func (c *console) setStatus(line string) {
	if c.width == nil {
		return
	}
	if runes, most := []rune(line), max(c.width()-1, 0); len(runes) > most {
		line = string(runes[:most])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if line == c.status {
		return
	}
	c.status = line
	// The old line is written over, and only what is left of it erased, so that nothing flickers.
	_, _ = io.WriteString(c.out, "\r"+line+eraseRest)
}
