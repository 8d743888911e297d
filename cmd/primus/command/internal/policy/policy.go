// Package policy is the commands that show and check policies.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
)

// New returns the command `primus policy`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("policy", "Look at the policy that ranks implementations",
		newPolicyShowCommand(prog), newPolicyCheckCommand(prog), newPolicySchemaCommand(prog),
	)
}

func newPolicyShowCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts dispatch.Options
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the policy in force and where each value came from",
		Example: `  primus policy show
  primus policy show --policy policy.yaml --prefer vendor
  TE_FL_PREFER=vendor TE_FL_DENY_VENDORS=acme primus policy show -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources := opts.Sources(nil)
			layers, file, err := sources.Load(cmd.Context())
			plugins, pluginsErr := sources.Plugins(file)
			log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
			if err := errors.Join(err, pluginsErr, sources.CheckVariables(log)); err != nil {
				return err
			}
			shown := shownPolicy{layers.Policy().View(), sources.Environment().Cuda(log), viewPlugins(plugins)}
			return output.Print(prog.Out, shown, func() error { return printPolicy(prog, shown, plugins) })
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

func printPolicy(prog cli.Program, v shownPolicy, plugins policyfile.Plugins) error {
	t := plaintext.NewTable(table.Row{"field", "value", "source"})
	row := func(field, value string) { t.AppendRow(table.Row{field, value, v.Sources[field]}) }
	allow := "all"
	if v.Allow != nil {
		allow = vendors(v.Allow)
	}
	prefer := v.Prefer.String()
	if v.Tuned {
		prefer = "tuned, then " + prefer
	}
	row("prefer", prefer)
	if v.Tuning != "" {
		row("tuning", v.Tuning)
	}
	row("strict", fmt.Sprint(v.Strict))
	row("allow_vendors", allow)
	row("deny_vendors", vendors(v.Deny))
	row("skip_cuda", fmt.Sprint(v.SkipCUDA))
	if v.CUDA.Dir != "" {
		t.AppendRow(table.Row{"cuda_home", v.CUDA.Dir, v.CUDA.Source})
	}
	row("deterministic", fmt.Sprint(v.Deterministic))
	row("protect_in_place", fmt.Sprint(v.ProtectInPlace))
	row("cross_device", v.CrossDevice.String())
	row("quarantine", v.Quarantine.String())
	row("verify", v.Verify.String())
	if len(v.Canary) == 0 {
		row("canary", "none")
	}
	for _, c := range v.Canary {
		row("canary."+c.Op, c.String())
	}
	if len(v.PerOp) == 0 {
		row("per_op_order", "none")
	}
	for _, pattern := range slices.Sorted(maps.Keys(v.PerOp)) {
		row("per_op_order."+pattern, strings.Join(v.PerOp[pattern], "|"))
	}
	if len(v.Rules) == 0 {
		row("rules", "none")
	}
	for i, rule := range v.Rules {
		row(fmt.Sprintf("rules[%d]", i), rule.String())
	}
	for _, r := range pluginRows(plugins) {
		t.AppendRow(r)
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}

// vendors returns the names of vendors as a policy file has them.
func vendors(names []string) string { return cmp.Or(strings.Join(names, ","), "none") }
