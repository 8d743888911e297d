package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

func newPolicyCheckCommand(prog cli.Program) *cobra.Command {
	var opts policyCheckOptions
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Check policy files",
		Long: `Check policy files without using them. Every fault is reported with file, line and
column. The plugins that a file names are loaded, each first in a child process, so
that their names are known. Names of ops, vendors and implementations that nothing in
this program registers are warnings, because one policy may serve many machines, and so
are plugins that cannot be used and ops that would be left without an implementation
here; with --strict they are errors.

--for also asks a run that has a service (--serve) what the file would do there, with
its other sources of policy, its plugins and its quarantines: how many ops would change
their implementation, and whether the run would refuse the policy because an op that
is in use would have none. The run does not change its policy.

--config also asks whether the file serves every call that an experiment of the native
backend makes, with the dispatch parameters of the experiment: those of its steps, its
evaluations and the text at its end. Nothing is trained.`,
		Example: `  primus policy check policy.yaml
  primus policy check --strict policies/*.yaml
  primus policy check --for 127.0.0.1:9400 policy.yaml
  primus policy check --config exp.yaml policy.yaml`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usagef(cmd, "no policy file given: want FILE…")
			}
			if opts.run != "" {
				service, err := serviceURL(opts.run)
				if err != nil {
					return cli.Usagef(cmd, "%v", err)
				}
				opts.service = service
			}
			return checkPolicies(cmd.Context(), prog, files, opts)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().BoolVar(&opts.strict, "strict", false, "names that no loaded source registers, plugins that cannot be used and ops without an implementation are errors")
	opts.plugins.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&opts.config, "config", "", "ask whether every call of the experiment `FILE` is served, too")
	cli.WithoutVariable(cmd.Flags(), "config")
	cmd.Flags().StringVar(&opts.run, "for", "", "ask the run whose service is at `HOST:PORT` or a URL, too")
	return cmd
}

// policyCheckOptions are the flags of `primus policy check`.
type policyCheckOptions struct {
	config  string // an experiment; "" for none
	strict  bool
	plugins dispatch.PluginFlags
	run     string
	service *url.URL // that run names; nil for none
}

// checkPolicies returns the faults of all files, and prints which files are valid.
func checkPolicies(ctx context.Context, prog cli.Program, files []string, opts policyCheckOptions) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	set := graph.Config{Log: log, Extras: prog.Extras}
	set.Policy.Env = dispatch.Environment{} // a file is judged by itself
	set.Policy.Flags.Plugins = opts.plugins
	var p graph.OpsParams
	return graph.Run(ctx, func() error {
		var faults []error
		for _, file := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			verdict := "valid"
			err := checkPolicy(ctx, set, p.Manager, file, opts.strict)
			if err == nil && opts.config != "" {
				err = checkForExperiment(ctx, prog, log, file, opts.config)
				verdict = "valid for " + opts.config
			}
			if err == nil && opts.service != nil {
				var v runVerdict
				if v, err = checkForRun(ctx, opts.service, file); err == nil {
					verdict = fmt.Sprintf("valid for the run at %s, where %d ops change their implementation", opts.service, opmanager.ChangedOps(v.Changes))
				}
				for _, warning := range v.Warnings {
					log.Warn(plaintext.Printable(warning))
				}
			}
			if err != nil {
				faults = append(faults, err)
				continue
			}
			if _, err := fmt.Fprintf(prog.Out, "%s: %s\n", file, verdict); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		return errors.Join(faults...)
	}, graph.OpsGraph(set, func(built graph.OpsParams) { p = built }))
}

// checkPolicy checks a policy file with the plugins that it names; m knows what is compiled in.
func checkPolicy(ctx context.Context, set graph.Config, m *opmanager.Manager, file string, strict bool) error {
	layer, err := policyfile.Read(ctx, file)
	if err != nil {
		return err
	}
	if len(layer.ApplyPlugins(policyfile.Plugins{}).Modules) == 0 {
		return checkLayer(m, set.Log, layer, nil, strict)
	}
	set.PluginsOf, set.ListPlugins = layer, true
	var p graph.OpsParams
	var loaded *pluginset.Set
	return graph.Run(ctx, func() error {
		return checkLayer(p.Manager, set.Log, layer, graph.PluginProblems(loaded), strict)
	}, graph.OpsGraph(set, func(built graph.OpsParams) { p = built }), fx.Populate(&loaded))
}

// checkLayer reports what a policy names that m does not know, after other warnings.
func checkLayer(m *opmanager.Manager, log *slog.Logger, layer *policyfile.Layer, warnings []string, strict bool) error {
	view := m.With(layer.Policy)
	defer view.Close()
	var faults []error
	for _, warning := range slices.Concat(warnings, view.Warnings(), withoutImpl(m, view)) {
		if strict {
			faults = append(faults, errors.New(warning))
		} else {
			log.Warn(warning)
		}
	}
	return errors.Join(faults...)
}

// withoutImpl says which ops the policy of a view leaves without an impl that have one under the
// policy of m.
func withoutImpl(m, view *opmanager.Manager) []string {
	var found []string
	for _, c := range opmanager.WithoutImpl(m, view) {
		found = append(found, fmt.Sprintf("policy: op %q would have no impl%s: impl %q: %s; a run that uses the op refuses the policy", c.Op, c.Where(), c.From, c.Reason))
	}
	return found
}
