package backend

import (
	"context"
	"log/slog"
)

// LevelDetail is the level of lines that are written to the log file of a run, as INFO, but not to
// the terminal.
const LevelDetail = slog.LevelInfo - 1

// Detail logs a line at LevelDetail.
func Detail(log *slog.Logger, message string) { log.Log(context.Background(), LevelDetail, message) }
