package serve

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"
)

// OpSource is where impls come from.
type OpSource struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Ops     int    `json:"ops" doc:"ops that it declares or has impls of"`
	Impls   int    `json:"impls"`
}

// Health is the answer of a service that is alive.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (s *Server) registerInventory() {
	get(s, "list-sources", "/v1/sources", "List where impls come from", func(context.Context, *nothing) ([]OpSource, error) { return s.sources(), nil })
	for _, list := range []struct {
		id, path, summary string
		lister            Lister
	}{
		{"list-plugins", "/v1/plugins", "List the sources of ops as primus plugins list does: state, version, file and checksum, and the reason if one was rejected", s.set.Plugins},
		{"list-patches", "/v1/patches", "List the patches of training backends, as primus patches list does, and those of the checkout that is shown, as primus patches scan does; source is program or checkout", s.set.Patches},
		{"list-backends", "/v1/backends", "List training backends, as primus backends list does", s.set.Backends},
	} {
		get(s, list.id, list.path, list.summary, func(ctx context.Context, _ *nothing) (any, error) {
			if list.lister == nil {
				return []any{}, nil
			}
			return list.lister(ctx)
		})
	}
	get(s, "plan-patches", "/v1/patches/plan", "Say which patches the experiment of the service gets, as primus patches plan does: 404 without one", func(ctx context.Context, _ *nothing) (any, error) {
		if s.set.PatchesPlan == nil {
			return nil, huma.Error404NotFound("no experiment is planned here: start primus serve with --config FILE, and with --repo DIR for the patches of a checkout of Primus")
		}
		return s.set.PatchesPlan(ctx)
	})
	get(s, "discover-targets", "/v1/sd", "List targets for Prometheus: the runs of the fleet, or without one this process", func(ctx context.Context, _ *nothing) (any, error) {
		if s.set.Discovery == nil {
			return []any{}, nil
		}
		targets, err := s.set.Discovery(ctx)
		if err != nil {
			return nil, huma.Error503ServiceUnavailable(err.Error())
		}
		return targets, nil
	})
	get(s, "health", "/healthz", "Say whether the service answers", func(context.Context, *nothing) (Health, error) { return s.health(), nil })
	get(s, "ready", "/readyz", "Say whether the program is ready: 503 until a run has begun, while it hangs and while it ends", func(context.Context, *nothing) (Health, error) {
		if s.closing.Load() {
			return Health{}, huma.Error503ServiceUnavailable("the program ends")
		}
		if s.set.Ready != nil {
			if err := s.set.Ready(); err != nil {
				return Health{}, huma.NewError(http.StatusServiceUnavailable, err.Error())
			}
		}
		return s.health(), nil
	})
}

func (s *Server) health() Health {
	h := Health{Status: "ok", Version: s.set.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		h.Go = info.GoVersion
	}
	return h
}

func (s *Server) sources() []OpSource {
	all := []OpSource{}
	for _, source := range s.set.Registry.Snapshot().Sources() {
		ops := map[string]struct{}{}
		for _, op := range source.Ops {
			ops[op.Name()] = struct{}{}
		}
		for _, impl := range source.Impls {
			ops[impl.Op.Name()] = struct{}{}
		}
		all = append(all, OpSource{Name: source.Name, Version: source.Version, Ops: len(ops), Impls: len(source.Impls)})
	}
	return all
}
