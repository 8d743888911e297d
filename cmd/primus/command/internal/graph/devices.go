package graph

import (
	"context"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/device"
	"go.uber.org/fx"
)

// WithDevices runs f with the device backends that are compiled in.
func WithDevices(ctx context.Context, prog cli.Program, log *slog.Logger, f func(*device.Registry) error) error {
	var reg *device.Registry
	return Run(ctx, func() error { return f(reg) }, fx.Options(Core(Config{Log: log, Extras: prog.Extras}), fx.Populate(&reg)))
}
