package plaintext

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Console is the terminal that log lines and a status share. The status, of one line or several,
// stays below everything that is written.
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
	eraseDown = "\x1b[J" // from the cursor on
)

// erase returns what removes the status.
func (c *Console) erase() string {
	if lines := strings.Count(c.status, "\n"); lines > 0 {
		return fmt.Sprintf("\r\x1b[%dA", lines) + eraseDown
	}
	return eraseLine
}

// Write prints whole lines above the status line.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == "" {
		return c.Out.Write(p)
	}
	// One write, so that the output of other programs cannot come in between.
	if _, err := io.WriteString(c.Out, c.erase()+string(p)+c.status); err != nil {
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

// SetStatus replaces the status; "" removes it. Its lines are cut to the width of the terminal.
func (c *Console) SetStatus(status string) {
	if c.Width == nil {
		return
	}
	width := max(c.Width()-1, 0)
	lines := strings.Split(status, "\n")
	for i, line := range lines {
		if text.StringWidthWithoutEscSequences(line) > width {
			lines[i] = text.Trim(line, width)
		}
	}
	status = strings.Join(lines, "\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	if status == c.status {
		return
	}
	// Old lines are overwritten and only their rests erased, so that they do not flicker.
	before := "\r"
	switch up := strings.Count(c.status, "\n"); {
	case up != len(lines)-1:
		before = c.erase()
	case up > 0:
		before = fmt.Sprintf("\r\x1b[%dA", up)
	}
	c.status = status
	_, _ = io.WriteString(c.Out, before+strings.Join(lines, EraseRest+"\n")+EraseRest)
}
