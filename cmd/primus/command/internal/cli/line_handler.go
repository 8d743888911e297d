package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
)

// Formats of the time in log lines: the time of day for a terminal, with the date for files.
const (
	TimeOfDay = "15:04:05"
	DateTime  = "2006-01-02 15:04:05"
)

// The escape sequences of colours.
const (
	boldYellow = "\x1b[1;33m"
	boldRed    = "\x1b[1;31m"
	plain      = "\x1b[0m"
)

// lineHandler is a slog.Handler that writes one readable line a record:
//
//	22:30:05 INFO  message key=value
type lineHandler struct {
	level    slog.Leveler
	format   string // of the time
	upstream bool   // lines begin like those of TransformerEngine-FL
	color    bool   // of the levels from WARN on
	out      io.Writer
	mu       *sync.Mutex
	attrs    string // of WithAttrs, as they are written
	group    string // of WithGroup, with a dot after each
}

// NewLineHandler returns a handler that writes records from a level on with the time in a format.
func NewLineHandler(out io.Writer, level slog.Leveler, format string) *lineHandler {
	return &lineHandler{level: level, format: format, out: out, mu: &sync.Mutex{}}
}

// Enabled implements slog.Handler.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s%s", h.head(r), plaintext.Lines(r.Message, moreIndent), h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&line, h.group, a)
		return true
	})
	line.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, line.String())
	return err
}

// As returns a handler that writes the same lines in a format of TEFL_LOG_FORMAT.
func (h *lineHandler) As(format oppolicy.LogFormat) *lineHandler {
	next := *h
	next.upstream = format == oppolicy.LogUpstream
	return &next
}

// head returns what a line begins with.
func (h *lineHandler) head(r slog.Record) string {
	if !h.upstream {
		return r.Time.Format(h.format) + " " + h.levelName(r.Level)
	}
	place := "-:0"
	if source := r.Source(); source != nil {
		place = fmt.Sprintf("%s:%d", filepath.Base(source.File), source.Line)
	}
	name := strings.TrimRight(h.levelName(r.Level), " ")
	return fmt.Sprintf("[TE-FL %s %s]", place, strings.Replace(name, "WARN", "WARNING", 1))
}

// levelName returns the name of a level in five columns. Warnings and errors are in colour.
func (h *lineHandler) levelName(l slog.Level) string {
	if l == backend.LevelDetail {
		l = slog.LevelInfo
	}
	name := fmt.Sprintf("%-5s", l)
	switch {
	case !h.color || l < slog.LevelWarn:
		return name
	case l < slog.LevelError:
		return boldYellow + name + plain
	default:
		return boldRed + name + plain
	}
}

// moreIndent begins the further lines of a record, so that no text in it looks like another record.
const moreIndent = "  "

// writeAttr writes " key=value", quoted where that would be ambiguous or not printable. Text of
// several lines, such as a stack, begins on a line of its own, and its lines are indented.
func writeAttr(b *strings.Builder, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, member := range value.Group() {
			writeAttr(b, group, member)
		}
		return
	}
	text := value.String()
	switch {
	case strings.Contains(text, "\n"):
		text = plaintext.Lines("\n"+strings.TrimRight(text, "\n"), moreIndent)
	case text == "" || strings.ContainsAny(text, " \t\"=") || !plaintext.IsPrintable(text):
		text = strconv.Quote(text)
	}
	fmt.Fprintf(b, " %s%s=%s", group, a.Key, text)
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		writeAttr(&b, h.group, a)
	}
	next := *h
	next.attrs += b.String()
	return &next
}

// WithGroup implements slog.Handler.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}

var _ slog.Handler = (*lineHandler)(nil)
