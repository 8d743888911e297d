package sandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/internal/plaintext"
)

// logMark begins the lines in which a child sends records of the plugin's log: level and text.
const logMark = "primus: logs "

// lineLog writes the records of a plugin's log as lines for the host.
type lineLog struct{ out io.Writer }

// Enabled implements slog.Handler.
func (*lineLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lineLog) Handle(_ context.Context, r slog.Record) error {
	_, err := fmt.Fprintf(l.out, "%s%v %s\n", logMark, r.Level, strings.ReplaceAll(r.Message, "\n", "; "))
	return err
}

// WithAttrs implements slog.Handler; the host names the plugin.
func (l *lineLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *lineLog) WithGroup(string) slog.Handler { return l }

// forwarder writes the lines of a child to the log of the host.
type forwarder struct {
	log     *slog.Logger
	name    string
	crashed bool
}

// forward logs one line: a record of the plugin's log with its level, or a line that its code
// printed. What Go prints about a crash is logged for debugging only; the host reports the crash
// itself.
func (f *forwarder) forward(line string) {
	if f.log == nil || strings.HasPrefix(line, stepMark) || strings.HasPrefix(line, endMark) {
		return
	}
	level := slog.LevelInfo
	if n, ok := strings.CutPrefix(line, leftMark); ok {
		line = fmt.Sprintf("it left %s processes running, which were ended", n)
	} else if text, ok := strings.CutPrefix(line, logMark); ok {
		word, rest, _ := strings.Cut(text, " ")
		if level.UnmarshalText([]byte(word)) == nil {
			line = rest
		}
	} else if f.crashed = f.crashed || crash.MatchString(line); f.crashed {
		level = slog.LevelDebug
	}
	f.log.Log(context.Background(), level, plaintext.Text(line), "plugin", f.name)
}

var _ slog.Handler = (*lineLog)(nil)
