package train

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/document"
)

// logLevels are the lowest levels of log lines on the terminal and in the file.
type logLevels struct{ console, file slog.Level }

// levelNames are the names of levels in experiments; those of PRIMUS_LOG_LEVEL are a few more.
var levelNames = map[string]slog.Level{
	"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "SUCCESS": slog.LevelInfo,
	"WARNING": slog.LevelWarn, "ERROR": slog.LevelError, "CRITICAL": slog.LevelError + 4,
	"WARN": slog.LevelWarn, "FATAL": slog.LevelError + 4,
}

// sinkLevels reads the levels of a module: sink_level for both, or stderr_sink_level and
// file_sink_level. The variable PRIMUS_LOG_LEVEL can lower the level of the terminal. It is ignored
// if it names no level.
func sinkLevels(params *document.Map, variable string) (logLevels, error) {
	levels := logLevels{console: slog.LevelInfo, file: slog.LevelDebug}
	read := func(into *slog.Level, key string) error {
		v, ok := params.Lookup(key)
		if !ok || v.IsNull() {
			return nil
		}
		level, known := levelNames[strings.ToUpper(v.Text())]
		if !known {
			return &document.Error{
				Origin: v.Origin(), Path: key, Problem: fmt.Sprintf("Level '%s' does not exist", v.Text()),
				Hint: "levels are TRACE, DEBUG, INFO, SUCCESS, WARNING, ERROR and CRITICAL",
			}
		}
		*into = level
		return nil
	}
	for _, sink := range []struct {
		into *slog.Level
		key  string
	}{{&levels.console, "stderr_sink_level"}, {&levels.file, "file_sink_level"}, {&levels.console, "sink_level"}, {&levels.file, "sink_level"}} {
		if err := read(sink.into, sink.key); err != nil {
			return levels, err
		}
	}
	if level, known := levelNames[strings.ToUpper(variable)]; known {
		levels.console = min(levels.console, level)
	}
	return levels, nil
}
