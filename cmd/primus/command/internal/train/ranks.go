package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/primus-fl/primus/vendors/mpi"
)

// ranks is the place of this process in a job whose ranks train in processes like this one. A
// launcher of Python frameworks has no such place.
type ranks struct{ backend.Distributed }

// placeOf returns the place of this process. What the environment has wrong ends the run later,
// before its first step.
func placeOf(module *config.Module) ranks {
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil || module.Framework != native.Framework {
		d = backend.Distributed{WorldSize: 1, LocalWorldSize: 1}
	}
	return ranks{d}
}

// follows reports whether another process, the first rank, reports for this one.
func (r ranks) follows() bool { return r.Rank > 0 }

// threads returns how many threads ops have when none are asked for: 0, which is one for each CPU
// that this process may use, or its share of them.
func (r ranks) threads(asked uint) int {
	if asked > 0 || r.LocalWorldSize == 1 {
		return int(asked)
	}
	return max(1, goruntime.NumCPU()/r.LocalWorldSize)
}

// setRankVariables says which rank this process is where a launcher says it in its own variables.
func setRankVariables() error {
	vars, err := launch.RankVariables(os.LookupEnv)
	if err != nil {
		return err
	}
	for _, v := range vars {
		if err := os.Setenv(v.Name, v.Value); err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
	}
	return nil
}

// meet lets the ranks of a job find each other, if MPI serves their collectives, and returns when
// all are there.
func meet(ctx context.Context, s *train.Settings, library *mpi.Library, place ranks, limit time.Duration) error {
	if place.WorldSize == 1 {
		return nil
	}
	of, err := s.Manager.Explain(string(collective.AllReduce.Name()))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(library.Source().Impls, func(i opregistry.Impl) bool { return i.ID == of.Selected }) {
		return nil
	}
	s.Progress.Enter(backend.PhaseRendezvous, 0)
	defer s.Progress.Enter(backend.PhaseStart, 0)
	return library.Meet(ctx, collective.Group{Rank: place.Rank, Ranks: place.WorldSize}, limit)
}

// logRestart logs that the ranks were started again, and why.
func logRestart(log *slog.Logger) {
	if r := backend.ReadRestarts(backend.ProcessEnviron()); r.Count > 0 {
		log.Warn("the ranks were started again: " + r.String())
	}
}

// common reports whether all ranks end with this error, so that none has to be ended by the others.
func common(err error) bool {
	_, all := errors.AsType[*world.CommonError](err)
	return all
}

// leaveError leaves the error of a run where the program that started this rank looks for it, and
// returns it, unless that program prints it.
func leaveError(err error) error {
	if err == nil || errors.Is(err, backend.ErrInterrupted) {
		return err
	}
	left := elastic.RankError{Message: err.Error()}
	_, left.Follows = errors.AsType[*world.Error](err)
	if _, gone := errors.AsType[*mpi.LostError](err); gone {
		left.Follows = true
	}
	_, left.Usage = errors.AsType[cli.UsageError](err)
	_, left.Hung = errors.AsType[hungError](err)
	if failed := elastic.WriteError(os.Getenv(elastic.EnvErrorFile), left); failed != nil {
		return errors.Join(err, failed)
	}
	if os.Getenv(elastic.EnvPrints) != "" {
		return cli.ErrReported
	}
	return err
}
