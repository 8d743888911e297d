package backend

import (
	"context"
	"log/slog"
)

// LevelDetail is the level of lines that belong into the log of a run, where they are of level INFO, but not among the few
// that a person at the terminal reads.
const LevelDetail = slog.LevelInfo - 1

// Detail logs a line of LevelDetail.
func Detail(log *slog.Logger, message string) { log.Log(context.Background(), LevelDetail, message) }
