package plugins

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/ops"
	"github.com/spf13/cobra"
)

// newPluginsProbeCommand returns the child process of a probe. It reports on the standard output of
// the process, which the plugin cannot write to.
func newPluginsProbeCommand(prog cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:    "probe FILE",
		Short:  "Load a plugin, try its ops and print what it reports as JSON",
		Hidden: true,
		Args:   cli.Arguments(1, "files", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return withDevices(cmd.Context(), prog, "", func(find deviceFinder) error {
				ok, err := sandbox.ServeProbe(path, plugin.Settings{Ops: ops.All(), Device: find}, check.Try(find))
				if err == nil && !ok {
					return cli.ErrReported
				}
				return err
			})
		},
	}
}

// deviceFinder returns the backend of devices of a type, or why there is none.
type deviceFinder = func(device.Type) (device.Backend, error)

// withDevices calls f with the devices of this program. A name makes that device the first of its
// type.
func withDevices(ctx context.Context, prog cli.Program, name string, f func(deviceFinder) error) error {
	return graph.WithDevices(ctx, prog, slog.New(slog.DiscardHandler), func(reg *device.Registry) error {
		if name != "" {
			if _, err := device.Choose(reg, "--device", name); err != nil {
				return cli.UsageError{Err: err}
			}
		}
		return f(reg.OfType)
	})
}

// newPluginsServeCommand returns the process of an isolated plugin. It talks to the process that
// started it.
func newPluginsServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve FILE",
		Short:  "Serve calls of an isolated plugin",
		Hidden: true,
		Args:   cli.Arguments(1, "files", "one"),
		RunE: func(_ *cobra.Command, args []string) error {
			return sandbox.Serve(args[0], plugin.Settings{Ops: ops.All()})
		},
	}
}
