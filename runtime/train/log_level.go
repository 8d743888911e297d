package train

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
)

// LogLevels are the lowest levels of log lines on the terminal and in the file of a run.
type LogLevels struct{ Console, File slog.Level }

// levelNames are the names of levels in experiments; those of PRIMUS_LOG_LEVEL are a few more.
var levelNames = map[string]slog.Level{
	"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "SUCCESS": slog.LevelInfo,
	"WARNING": slog.LevelWarn, "ERROR": slog.LevelError, "CRITICAL": slog.LevelError + 4,
	"WARN": slog.LevelWarn, "FATAL": slog.LevelError + 4,
}

// ReadLogLevels reads the levels of a module: sink_level for both, or stderr_sink_level and
// file_sink_level. The value of PRIMUS_LOG_LEVEL can lower the level of the terminal. It is ignored
// if it names no level. At level INFO the file has what backend.Detail logs, too. A run logs before
// its patches are applied, so that a patch cannot change these levels.
func ReadLogLevels(params *document.Map, variable string) (LogLevels, error) {
	levels := LogLevels{Console: slog.LevelInfo, File: slog.LevelDebug}
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
	}{{&levels.Console, "stderr_sink_level"}, {&levels.File, "file_sink_level"}, {&levels.Console, "sink_level"}, {&levels.File, "sink_level"}} {
		if err := read(sink.into, sink.key); err != nil {
			return levels, err
		}
	}
	if level, known := levelNames[strings.ToUpper(variable)]; known {
		levels.Console = min(levels.Console, level)
	}
	if levels.File == slog.LevelInfo {
		levels.File = backend.LevelDetail
	}
	return levels, nil
}
