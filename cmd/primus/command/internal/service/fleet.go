package service

import (
	"context"
	"os"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/fleet"
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
}

// NewFleetMember returns the membership, which begins and ends with the graph.
func NewFleetMember(set Config, m *opmanager.Manager, service *Service, reg *prometheus.Registry, lc fx.Lifecycle) *FleetMember {
	f := &FleetMember{}
	if len(set.Fleet.config.Endpoints) == 0 {
		return f
	}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) (err error) {
			f.agent, err = fleet.NewAgent(fleet.Settings{Config: set.Fleet.config, Identity: service.identity(), Manager: m, Log: set.Log})
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

// state returns what the metrics of a fleet show.
func (f *FleetMember) state() metrics.FleetState {
	s := f.agent.State()
	return metrics.FleetState{Connected: s.Connected, Losses: s.Losses, Revision: s.Policy.InForce, Rejections: s.Rejections}
}
