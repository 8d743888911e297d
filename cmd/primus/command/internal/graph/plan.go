package graph

import (
	"context"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"go.uber.org/fx"
)

// PlanParams are what planning a run needs of the graph.
type PlanParams struct {
	fx.In
	Backends *backend.Registry
	Patches  *patch.Set
}

// PlanGraph wires what planning a run needs and passes it to a function.
func PlanGraph(set Config, wire func(PlanParams)) fx.Option {
	return fx.Options(Core(set), fx.Invoke(wire))
}

// WithBackends runs f with the backends and patches that are compiled in.
func WithBackends(ctx context.Context, prog cli.Program, log *slog.Logger, f func(PlanParams) error) error {
	var p PlanParams
	return Run(ctx, func() error { return f(p) }, PlanGraph(Config{Log: log, Extras: prog.Extras}, func(built PlanParams) { p = built }))
}
