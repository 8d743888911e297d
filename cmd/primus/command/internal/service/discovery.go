package service

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/serve"
	"go.uber.org/fx"
)

// discovery returns what the service answers at /v1/sd: the runs of the fleet, or without a fleet
// this process.
func (s *Service) discovery(lc fx.Lifecycle) serve.Lister {
	if len(s.set.Fleet.config.Endpoints) == 0 {
		return func(context.Context) (any, error) {
			return fleet.Targets([]fleet.Member{{Identity: s.identity()}}), nil
		}
	}
	var client *fleet.Client
	lc.Append(fx.Hook{
		OnStart: func(context.Context) (err error) {
			client, err = fleet.Open(s.set.Fleet.config)
			return err
		},
		OnStop: func(context.Context) error { return client.Close() },
	})
	return func(ctx context.Context) (any, error) {
		all, err := client.Snapshot(ctx)
		return fleet.Targets(all.Members), err
	}
}

// identity returns what this process reports about itself while it listens. Its metrics are at
// --metrics-addr, else at the address of the service.
func (s *Service) identity() fleet.Identity {
	identity := s.set.Fleet.identity
	switch {
	case s.output.server != nil:
		identity.Metrics = reachable(s.set.Metrics.Addr, s.output.server.Addr())
	case s.server != nil:
		scheme, listening, _ := strings.Cut(s.server.URL(), "://")
		identity.Metrics, identity.MetricsTLS = reachable(s.set.Serve.Addr, listening), scheme == "https"
	}
	return identity
}

// reachable returns the address at which others reach a server: the port is that on which it
// listens, and an address that means all of the machine is replaced by the name of the machine.
func reachable(given, listening string) string {
	host, _, err := net.SplitHostPort(given)
	_, port, listeningErr := net.SplitHostPort(listening)
	if err != nil || listeningErr != nil {
		return listening
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = hostname()
	}
	return net.JoinHostPort(host, port)
}

// hostname returns the name of the machine.
func hostname() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}
