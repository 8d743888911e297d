package cli

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
)

func TestLevelsInColour(t *testing.T) {
	var out bytes.Buffer
	h := NewLineHandler(&out, slog.LevelDebug, TimeOfDay)
	h.color = true
	log := slog.New(h)
	log.Info("a")
	backend.Detail(log, "b")
	log.Warn("c")
	log.Error("d")
	for _, want := range []string{" INFO  a\n", " INFO  b\n", " \x1b[1;33mWARN \x1b[0m c\n", " \x1b[1;31mERROR\x1b[0m d\n"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestLineHandler(t *testing.T) {
	tests := []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"plain", func(l *slog.Logger) { l.Info("saved", "step", 3, "path", "a/b") }, "INFO  saved step=3 path=a/b\n"},
		{"level", func(l *slog.Logger) { l.Debug("not shown"); l.Warn("shown") }, "WARN  shown\n"},
		{"quotes", func(l *slog.Logger) { l.Info("m", "a", "b c", "d", "", "e", `x="y"`) }, `INFO  m a="b c" d="" e="x=\"y\""` + "\n"},
		{"lines", func(l *slog.Logger) { l.Info("m", "stack", "one\ntwo\n") }, "INFO  m stack=\n  one\n  two\n"},
		{"a forged line", func(l *slog.Logger) { l.Warn("m\n15:04:05 INFO  n", "a", "b\n15:04:05 INFO  n") }, "WARN  m\n  15:04:05 INFO  n a=\n  b\n  15:04:05 INFO  n\n"},
		{"escapes", func(l *slog.Logger) { l.Info("m\x1b[2K", "a", "\x1b]0;t\a", "b", "\u202ec", "d", "\r\ne") }, `INFO  m\x1b[2K a="\x1b]0;t\a" b="\u202ec" d=` + "\n  \\r\n  e\n"},
		{"with", func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).Info("m", "c", 3) }, "INFO  m a=1 g.b=2 g.c=3\n"},
		{"group", func(l *slog.Logger) { l.Info("m", slog.Group("g", "a", 1, slog.Group("h", "b", 2))) }, "INFO  m g.a=1 g.h.b=2\n"},
		{"duration", func(l *slog.Logger) { l.Info("m", "took", 1500*time.Millisecond) }, "INFO  m took=1.5s\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.log(slog.New(NewLineHandler(&out, slog.LevelInfo, TimeOfDay)))
			assert.Regexp(t, `^\d\d:\d\d:\d\d `, out.String())
			assert.Equal(t, tt.want, out.String()[len("15:04:05 "):])
		})
	}
}
