package command

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/fleet"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// fleetSettings are what a run tells the fleet; without endpoints it belongs to none.
type fleetSettings struct {
	config   fleet.Config
	identity fleet.Identity
}

// member returns the settings for the run of a module.
func (o *fleetOptions) member(e *config.Experiment, m *config.Module) (fleetSettings, error) {
	if o.endpoints == "" {
		return fleetSettings{}, nil
	}
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil {
		return fleetSettings{}, usageError{err}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fleetSettings{config: o.config(), identity: fleet.Identity{
		Experiment: e.ExpName, Backend: m.Framework, Rank: d.Rank, WorldSize: d.WorldSize,
		Host: host, PID: os.Getpid(), Version: buildVersion().Version, Started: time.Now().UTC(),
	}}, nil
}

// fleetMember makes a run known to its fleet while the graph runs, if there is one.
type fleetMember struct{ agent *fleet.Agent }

func newFleetMember(set appConfig, m *opmanager.Manager, live *livePolicy, output *metricsOutput, reg *prometheus.Registry, lc fx.Lifecycle) *fleetMember {
	f := &fleetMember{}
	if len(set.fleet.config.Endpoints) == 0 {
		return f
	}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) (err error) {
			identity := set.fleet.identity
			if output.server != nil {
				identity.Metrics = advertised(ctx, set.log, output.server.Addr(), set.fleet.config.Endpoints[0])
			}
			f.agent, err = fleet.NewAgent(fleet.Settings{Config: set.fleet.config, Identity: identity, Manager: m, Apply: live.setFleet, Log: set.log})
			if err != nil {
				return err
			}
			if err := reg.Register(f.agent.Collector()); err != nil {
				return err
			}
			f.agent.Start(ctx)
			return nil
		},
		OnStop: func(context.Context) error {
			f.agent.Close()
			return nil
		},
	})
	return f
}

// advertised returns where others reach a server that listens on an address: for one that listens on every address of the
// machine, the one that packets to the fleet come from, or else the name of the machine.
func advertised(ctx context.Context, log *slog.Logger, listen, endpoint string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return listen
	}
	if _, address, found := strings.Cut(endpoint, "://"); found {
		endpoint = address
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "udp", endpoint) // sends nothing
	if err == nil {
		defer conn.Close()
		host, _, err = net.SplitHostPort(conn.LocalAddr().String())
	}
	if err != nil {
		if host, err = os.Hostname(); err != nil {
			host = "localhost"
		}
		log.Warn("the address of this machine towards the fleet is not known, its name stands for it", "name", host)
	}
	return net.JoinHostPort(host, port)
}
