package plaintext

import (
	"io"
	"sync"
)

// Console is the terminal that log lines and a status line share. The status line stays below
// everything that is written.
type Console struct {
	Out   io.Writer
	Width func() int // nil without a terminal, which has no status line

	mu     sync.Mutex
	status string
}

// EraseRest erases the line from the cursor on, and eraseLine the whole line.
const (
	EraseRest = "\x1b[K"
	eraseLine = "\r" + EraseRest
)

// Write prints whole lines above the status line.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == "" {
		return c.Out.Write(p)
	}
	// One write, so that the output of other programs cannot come in between.
	if _, err := io.WriteString(c.Out, eraseLine+string(p)+c.status); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Status returns SetStatus, or nil without a terminal.
func (c *Console) Status() func(line string) {
	if c.Width == nil {
		return nil
	}
	return c.SetStatus
}

// SetStatus replaces the status line; "" removes it. The line is cut to the width of the terminal.
func (c *Console) SetStatus(line string) {
	if c.Width == nil {
		return
	}
	if runes, width := []rune(line), max(c.Width()-1, 0); len(runes) > width {
		line = string(runes[:width])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if line == c.status {
		return
	}
	c.status = line
	// The old line is overwritten and only its rest erased, so that the line does not flicker.
	_, _ = io.WriteString(c.Out, "\r"+line+EraseRest)
}
