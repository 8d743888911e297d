package train

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/watchdog"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train"
)

// hungError is the error of a run that was ended because it hung.
type hungError struct{ error }

// watch returns the settings of the watchdog of a run in this process.
func (o *Options) watch(prog cli.Program, s train.Settings, place ranks, recent func() string, member *service.FleetMember) watchdog.Settings {
	w := watchdog.Settings{
		Progress: s.Progress, Floor: o.run.Launch.Hang, Log: s.Log, Wait: o.run.Grace,
		Observer: s.Observer.(backend.Observers), Recent: recent,
		Impl: func(op string) string {
			of, err := s.Manager.Explain(op)
			if err != nil {
				return ""
			}
			return of.Selected
		},
	}
	if !o.run.Launch.HangEnds {
		return w
	}
	w.Abort = func(why string) {
		err := errors.New(why + "; it was ended, and the same command goes on from the last checkpoint")
		if place.WorldSize > 1 {
			err = fmt.Errorf("rank %d of %d: %w", place.Rank, place.WorldSize, err)
		}
		if err := leaveError(hungError{err}); !errors.Is(err, cli.ErrReported) {
			fmt.Fprintln(prog.Err, "primus: error:", err)
		}
		member.Ended(launch.HangCode, err)
		prog.Ending.Exit(launch.HangCode)
	}
	return w
}
