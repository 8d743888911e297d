package cli

import (
	"io"
	"log/slog"

	"github.com/primus-fl/primus/runtime/backend"
)

// NewJSONHandler returns a handler that writes each record as a line with a JSON object, with the
// name of the run and the rank in each.
func NewJSONHandler(out io.Writer, level slog.Leveler, run string, rank int) slog.Handler {
	h := slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if l, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey && l == backend.LevelDetail {
			a.Value = slog.AnyValue(slog.LevelInfo)
		}
		return a
	}})
	return h.WithAttrs([]slog.Attr{slog.String("run", run), slog.Int("rank", rank)})
}
