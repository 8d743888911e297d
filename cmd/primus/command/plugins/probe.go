package plugins

import (
	"path/filepath"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/plugin"
	"github.com/primus-fl/primus/vendors/plugin/check"
	"github.com/primus-fl/primus/vendors/plugin/sandbox"
	"github.com/spf13/cobra"
)

// newPluginsProbeCommand returns the child process of a probe. It reports on the standard output of
// the process, which the plugin cannot write to.
func newPluginsProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "probe FILE",
		Short:  "Load a plugin, try its ops and print what it reports as JSON",
		Hidden: true,
		Args:   cli.Arguments(1, "files", "one"),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			ok, err := sandbox.ServeProbe(path, plugin.Settings{Ops: ops.All()}, tryOp)
			if err == nil && !ok {
				return cli.ErrReported
			}
			return err
		},
	}
}

// tryOp calls an impl of a source in a few cases of the conformance kit.
func tryOp(src opregistry.Source, impl opregistry.Impl, progress func(string)) (plugin.Trial, error) {
	found, err := opscases.All().Try(check.SubjectOf(src, impl), opstest.WithProgress(progress))
	return plugin.Trial(found), err
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
