package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
)

func newPolicyCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Look at the policy that ranks implementations",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newPolicyShowCommand(streams), newPolicyCheckCommand(streams), newPolicySchemaCommand(streams))
	return cmd
}

func newPolicyShowCommand(streams Streams) *cobra.Command {
	var output outputFormat
	var opts policyOptions
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the policy in force and where each value came from",
		Example: `  primus policy show
  primus policy show --policy policy.yaml --prefer vendor
  TE_FL_PREFER=vendor TE_FL_DENY_VENDORS=acme primus policy show -o json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			sources := opts.sources(nil)
			policy, file, err := sources.load()
			plugins, pluginsErr := sources.plugins(file)
			if err := errors.Join(err, pluginsErr); err != nil {
				return err
			}
			if output == outputJSON {
				return writeJSON(streams.Out, shownPolicy{policy.View(), viewPlugins(plugins)})
			}
			return printPolicy(streams, policy.View(), plugins)
		},
	}
	output.addFlag(cmd)
	opts.addFlags(cmd.Flags())
	return cmd
}

func printPolicy(streams Streams, v opmanager.PolicyView, plugins policyfile.Plugins) error {
	t := newTable(table.Row{"field", "value", "source"})
	row := func(field, value string) { t.AppendRow(table.Row{field, value, v.Sources[field]}) }
	allow := "all"
	if v.Allow != nil {
		allow = cmp.Or(strings.Join(v.Allow, ","), "none")
	}
	row("prefer", v.Prefer.String())
	row("strict", fmt.Sprint(v.Strict))
	row("allow_vendors", allow)
	row("deny_vendors", cmp.Or(strings.Join(v.Deny, ","), "none"))
	row("skip_cuda", fmt.Sprint(v.SkipCUDA))
	row("protect_in_place", fmt.Sprint(v.ProtectInPlace))
	if len(v.PerOp) == 0 {
		row("per_op_order", "none")
	}
	patterns := make([]string, 0, len(v.PerOp))
	for pattern := range v.PerOp {
		patterns = append(patterns, pattern)
	}
	slices.Sort(patterns)
	for _, pattern := range patterns {
		t.AppendRow(table.Row{"per_op_order." + pattern, strings.Join(v.PerOp[pattern], "|"), v.Sources["per_op_order."+pattern]})
	}
	for _, r := range pluginRows(plugins) {
		t.AppendRow(r)
	}
	_, err := fmt.Fprintln(streams.Out, render(t))
	return err
}
