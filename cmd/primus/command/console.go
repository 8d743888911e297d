package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// console is the terminal that log lines and a progress bar share.
type console struct {
	mu  sync.Mutex
	out io.Writer
	bar *progressbar.ProgressBar
}

// Write prints above the progress bar.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == nil {
		return c.out.Write(p)
	}
	if err := c.bar.Clear(); err != nil {
		return 0, err
	}
	n, err := c.out.Write(p)
	if err == nil {
		err = c.bar.RenderBlank()
	}
	return n, err
}

// setBar shows a bar, or none when it is nil.
func (c *console) setBar(bar *progressbar.ProgressBar) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar = bar
}

// lineHandler is a slog.Handler that writes one readable line a record:
//
//	22:30:05 INFO  message key=value
type lineHandler struct {
	level slog.Leveler
	out   io.Writer
	mu    *sync.Mutex
	attrs []slog.Attr
	group string
}

func newLineHandler(out io.Writer, level slog.Leveler) *lineHandler {
	return &lineHandler{level: level, out: out, mu: &sync.Mutex{}}
}

// Enabled implements slog.Handler.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %-5s %s", r.Time.Format("15:04:05"), r.Level, r.Message)
	write := func(a slog.Attr) bool {
		value := a.Value.Resolve().String()
		if strings.ContainsAny(value, " \t\n\"=") && !strings.Contains(value, "\n") {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&line, " %s%s=%s", h.group, a.Key, value)
		return true
	}
	for _, a := range h.attrs {
		write(a)
	}
	r.Attrs(write)
	line.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, line.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Concat(h.attrs, attrs)
	return &next
}

// WithGroup implements slog.Handler.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.group += name + "."
	return &next
}

var _ slog.Handler = (*lineHandler)(nil)
