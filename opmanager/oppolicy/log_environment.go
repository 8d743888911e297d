package oppolicy

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// LogFormat is the format in which log lines of dispatch begin.
type LogFormat uint8

// The formats of log lines.
const (
	// LogPlain is the format of all other log lines of the program.
	LogPlain LogFormat = iota
	// LogUpstream is the format of TransformerEngine-FL: [TE-FL FILE:LINE LEVEL].
	LogUpstream
	// LogJSON makes all log lines of a run JSON objects.
	LogJSON
)

var logFormatNames = []string{LogPlain: "plain", LogUpstream: "upstream", LogJSON: "json"}

var logLevelNames = []string{"DEBUG", "INFO", "WARNING", "ERROR"}

// CheckLogging reads TEFL_LOG_LEVEL and TEFL_LOG_FORMAT. The error joins an *Error for each value
// that cannot be read.
func CheckLogging(lookup func(string) (string, bool)) error {
	level, _ := lookup(EnvLogLevel)
	format, _ := lookup(EnvLogFormat)
	_, levelErr := ParseLogLevel(level)
	_, formatErr := ParseLogFormat(format)
	return errors.Join(levelErr, formatErr)
}

// ParseLogLevel reads the value of TEFL_LOG_LEVEL in any case. An empty value means INFO.
func ParseLogLevel(value string) (slog.Level, error) {
	switch strings.ToUpper(strings.TrimSpace(value)) {
	case "DEBUG":
		return slog.LevelDebug, nil
	case "INFO", "":
		return slog.LevelInfo, nil
	case "WARNING", "WARN":
		return slog.LevelWarn, nil
	case "ERROR":
		return slog.LevelError, nil
	}
	return 0, unknownWord(EnvLogLevel, value, "level", logLevelNames)
}

// ParseLogFormat reads the value of TEFL_LOG_FORMAT in any case. An empty value means plain, and
// so does text.
func ParseLogFormat(value string) (LogFormat, error) {
	word := strings.ToLower(strings.TrimSpace(value))
	if word == "" || word == "text" {
		return LogPlain, nil
	}
	if i := slices.Index(logFormatNames, word); i >= 0 {
		return LogFormat(i), nil
	}
	return 0, unknownWord(EnvLogFormat, value, "format", logFormatNames)
}

// unknownWord returns the error for a variable whose value is none of the words.
func unknownWord(variable, value, what string, words []string) error {
	word := strings.TrimSpace(value)
	last := len(words) - 1
	return &Error{
		Source: "environment " + variable, Value: value, Offset: leadingSpace(value),
		Problem: fmt.Sprintf("unknown %s %q, want %s or %s%s", what, word, strings.Join(words[:last], ", "), words[last], suggest.Hint(word, words)),
	}
}
