package cli

import (
	"context"
	"errors"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/runtime/backend"
)

// Exit codes, beside those of a Python framework that fails.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitHung    = launch.HangCode

	// ExitInterrupted is that of a process that was interrupted.
	ExitInterrupted = 130
)

// ExitCode returns the code with which a process ends after an error or nil. ctx ends when the
// process is interrupted.
func ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrReported):
		return exitFailure
	case errors.Is(err, backend.ErrInterrupted), ctx.Err() != nil && errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	var usage UsageError
	if errors.As(err, &usage) || errors.Is(err, document.ErrUsage) {
		return exitUsage
	}
	if failed, ok := errors.AsType[*launch.Failure](err); ok {
		return failed.ExitCode()
	}
	if failed, ok := errors.AsType[*elastic.Failure](err); ok && failed.Hung {
		return exitHung
	}
	if failed, ok := errors.AsType[*launch.ExitError](err); ok {
		return failed.ExitCode()
	}
	return exitFailure
}
