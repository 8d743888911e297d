package service

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// fleetSettings are what a process reports about itself, and to which fleet. Without endpoints it
// belongs to none.
type fleetSettings struct {
	config   fleet.Config
	identity fleet.Identity
}

// Process returns the settings of a process that is no run.
func (o *FleetFlags) Process() fleetSettings {
	return fleetSettings{config: o.config(), identity: fleet.Identity{
		Host: hostname(), PID: os.Getpid(), WorldSize: 1, Version: buildinfo.Read().Version, Started: time.Now().UTC(),
	}}
}

// Member returns the settings for the run of a module. A wrong rank is an error here only in a
// fleet; elsewhere it ends the run before its first step.
func (o *FleetFlags) Member(e *config.Experiment, m *config.Module) (fleetSettings, error) {
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil && o.endpoints != "" {
		return fleetSettings{}, cli.UsageError{Err: err}
	}
	s := o.Process()
	s.identity.Experiment, s.identity.Backend, s.identity.Rank, s.identity.WorldSize = e.ExpName, m.Framework, d.Rank, d.WorldSize
	return s, nil
}

// FleetMember makes a run known to its fleet while the graph runs, if there is one.
type FleetMember struct {
	agent   *fleet.Agent
	metrics *metrics.Fleet
	manager *opmanager.Manager
	board   *runs.Board
	pace    *fleet.PaceMeter
}

// NewFleetMember returns the membership, which begins and ends with the graph.
func NewFleetMember(set Config, m *opmanager.Manager, service *Service, board *runs.Board, reg *prometheus.Registry, lc fx.Lifecycle) *FleetMember {
	f := &FleetMember{manager: m, board: board}
	f.pace = fleet.NewPaceMeter(m.Generation, f.calls)
	if len(set.Fleet.config.Endpoints) == 0 {
		return f
	}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) (err error) {
			f.agent, err = fleet.NewAgent(fleet.Settings{Config: set.Fleet.config, Identity: service.identity(), Manager: m, Log: set.Log, Status: f.status, Tail: tailOf(set.RunLog)})
			if err != nil {
				return err
			}
			if f.metrics, err = metrics.NewFleet(reg, f.state); err != nil {
				return err
			}
			f.agent.Start(ctx)
			return nil
		},
		OnStop: func(context.Context) error {
			f.agent.Close()
			f.metrics.Close()
			return nil
		},
	})
	return f
}

// tailOf returns what reads the log of a run, nil if nothing is kept.
func tailOf(log *runs.Tail) func(int, int64) ([]byte, int64) {
	if log == nil {
		return nil
	}
	return log.Since
}

// RunStarted is there for backend.Observer.
func (f *FleetMember) RunStarted(backend.Run) {}

// StepDone measures how fast the run is.
func (f *FleetMember) StepDone(s backend.Step) {
	if f.agent != nil {
		f.pace.Step(s.Duration)
	}
}

// RunEnded is there for backend.Observer.
func (f *FleetMember) RunEnded(backend.Result) {}

// Ended tells the fleet how the run ends: with this exit code, and an error or nil. Only the first
// call counts.
func (f *FleetMember) Ended(code int, err error) {
	if f == nil || f.agent == nil {
		return
	}
	reason := ""
	if err != nil {
		reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	f.agent.Ended(code, reason)
}

// EndsNow tells the fleet that the process ends at once. It takes two seconds at most.
func (f *FleetMember) EndsNow(code int) {
	if f == nil || f.agent == nil {
		return
	}
	f.Ended(code, errNoTime)
	f.agent.Close()
}

// errNoTime is the reason of a run that gave no other.
var errNoTime = errors.New("the process was ended before the run could end by itself")

// calls returns how many calls of ops the process has made, and how many of them fell back.
func (f *FleetMember) calls() (calls, fallbacks uint64) {
	for _, s := range f.manager.Stats() {
		calls, fallbacks = calls+s.Calls, fallbacks+s.Fallbacks
	}
	return calls, fallbacks
}

// status returns how the run gets on.
func (f *FleetMember) status() fleet.Status {
	s := fleet.Status{State: fleet.StateStarting, Pace: f.pace.Pace()}
	for _, r := range f.board.Runs() {
		s.State, s.Dir, s.Step, s.Steps, s.Loss, s.TokensPerSecond = fleet.StateTraining, r.Dir, r.Step, r.Steps, r.Loss, r.TokensPerSecond
		if r.Diverged != "" {
			s.State, s.Detail = fleet.StateDiverged, r.Diverged
		}
	}
	if where := f.board.StalledAt(); where != "" {
		s.State, s.Detail = fleet.StateStalled, where
	}
	return s
}

var _ backend.Observer = (*FleetMember)(nil)

// state returns what the metrics of a fleet show.
func (f *FleetMember) state() metrics.FleetState {
	s := f.agent.State()
	return metrics.FleetState{Connected: s.Connected, Losses: s.Losses, Revision: s.Policy.InForce, Rejections: s.Rejections}
}
