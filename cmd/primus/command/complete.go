package command

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// policyNames are what the values of policy flags may name.
type policyNames struct {
	ops, vendors []string
	impls        map[string][]string // ids by op
}

// policyCompletions say how the values of policy flags are completed. A key is the end of the name
// of a flag, because the flags for one of two policies have a prefix.
var policyCompletions = map[string]func(known policyNames, begun string) []string{
	"prefer":        func(policyNames, string) []string { return cli.KindNames() },
	"allow-vendors": completeVendors,
	"deny-vendors":  completeVendors,
	"per-op":        completePerOp,
}

// completePolicies makes the policy flags of a command, and of those below it, complete to names
// that are compiled in.
func completePolicies(cmd *cobra.Command, prog cli.Program) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*dispatch.Flag); !ok {
			return
		}
		for suffix, values := range policyCompletions {
			if flag.Name != suffix && !strings.HasSuffix(flag.Name, "-"+suffix) {
				continue
			}
			complete := func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return cli.Matching(values(compiledIn(prog), begun), begun)
			}
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
				panic("BUG: " + err.Error())
			}
		}
	})
	for _, sub := range cmd.Commands() {
		completePolicies(sub, prog)
	}
}

// completeVendors completes the last of several names with commas.
func completeVendors(known policyNames, begun string) []string {
	before := begun[:strings.LastIndex(begun, ",")+1]
	var values []string
	for _, vendor := range known.vendors {
		if !slices.Contains(strings.Split(before, ","), vendor) {
			values = append(values, before+vendor)
		}
	}
	return values
}

// completePerOp completes the name of an op, and then the last token of its order.
func completePerOp(known policyNames, begun string) []string {
	rule := begun[strings.LastIndex(begun, ";")+1:]
	op, order, hasOrder := strings.Cut(rule, "=")
	if !hasOrder {
		before := strings.TrimSuffix(begun, rule)
		values := make([]string, len(known.ops))
		for i, name := range known.ops {
			values[i] = before + name + "="
		}
		return values
	}
	before := strings.TrimSuffix(begun, order) + order[:strings.LastIndex(order, "|")+1]
	tokens := cli.KindNames()
	for _, vendor := range known.vendors {
		tokens = append(tokens, "vendor:"+vendor)
	}
	for _, id := range known.impls[op] {
		tokens = append(tokens, "impl:"+id)
	}
	for i, token := range tokens {
		tokens[i] = before + token
	}
	return tokens
}

// compiledIn returns the names that are compiled in. Completion cannot report errors, so a program
// whose graph is faulty has none. Plugins are not loaded.
func compiledIn(prog cli.Program) policyNames {
	known := policyNames{impls: map[string][]string{}}
	set := graph.Config{Log: slog.New(slog.DiscardHandler), Policy: dispatch.Sources{Env: dispatch.Environment{}}, Extras: prog.Extras}
	var registry *opregistry.Registry
	err := graph.Run(context.Background(), func() error { return nil },
		graph.Core(set), fx.Invoke(func(r *opregistry.Registry) { registry = r }))
	if err != nil {
		return known
	}
	snapshot := registry.Snapshot()
	for i, op := range snapshot.Ops() {
		known.ops = append(known.ops, op.Name())
		for _, impl := range snapshot.Impls(i) {
			known.impls[op.Name()] = append(known.impls[op.Name()], impl.ID)
			if impl.Vendor != "" && !slices.Contains(known.vendors, impl.Vendor) {
				known.vendors = append(known.vendors, impl.Vendor)
			}
		}
	}
	slices.Sort(known.vendors)
	return known
}
