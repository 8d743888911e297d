package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/cmd/primus/command/ops"
	"github.com/primus-fl/primus/cmd/primus/command/policy"
	servecmd "github.com/primus-fl/primus/cmd/primus/command/serve"
	"github.com/primus-fl/primus/cmd/primus/command/train"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/serve"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// Graphs returns the fx graphs of the program by name, with what another program adds.
func Graphs(extras ...fx.Option) map[string]fx.Option {
	listens := serve.Config{Addr: "127.0.0.1:0"}
	output := service.MetricsConfig{Addr: "127.0.0.1:0", Textfile: "run.prom"}
	return map[string]fx.Option{
		"formats": graph.FormatsGraph(extras, func(*document.Formats) {}),
		"ops":     graph.OpsGraph(graph.Config{Extras: extras}, func(graph.OpsParams) {}),
		"plan":    graph.PlanGraph(graph.Config{Extras: extras}, func(graph.PlanParams) {}),
		"serve":   servecmd.Graph(graph.Config{Extras: extras}, service.Config{Serve: listens}),
		"train":   train.Graph(graph.Config{Extras: extras}, service.Config{Metrics: output, Serve: listens}, func(train.Params) {}),
	}
}

// ParseCatalog reads a catalogue and returns how many impls it lists.
func ParseCatalog(file string, text []byte) (int, error) {
	entries, err := ops.ParseCatalog(file, text)
	return len(entries), err
}

// CatalogError is the error of ParseCatalog.
type CatalogError = ops.CatalogError

// DispatchVariables are the names of the variables of dispatch.
func DispatchVariables() []string { return dispatch.Variables() }

// PolicyOf returns the policy that train would use with these arguments, for each key of a policy file the value and its
// source, or what is wrong.
func PolicyOf(args []string) (values map[string]string, problem error) {
	var opts train.Options
	cmd := &cobra.Command{Use: "train", DisableFlagParsing: true}
	cmd.SetOut(io.Discard)
	opts.AddFlags(cmd.Flags())
	overrides, err := experiments.ParseTrainArgs(cmd, args)
	if err != nil {
		return nil, err
	}
	experiment, err := opts.Load("pre_trainer", overrides)
	if err != nil {
		return nil, err
	}
	module, err := experiment.Module("pre_trainer")
	if err != nil {
		return nil, err
	}
	sources := opts.PolicySources(module)
	p, _, err := sources.Load()
	if err != nil {
		return nil, err
	}
	patterns := []string{}
	for _, rule := range p.PerOp {
		patterns = append(patterns, rule.Pattern)
	}
	view := p.View()
	var rules []string
	for _, rule := range view.Rules {
		rules = append(rules, policy.RuleText(rule))
	}
	values = map[string]string{
		"rules": strings.Join(rules, "; "), "quarantine": policy.QuarantineText(view.Quarantine), "verify": policy.VerifyText(view.Verify),
		"prefer": p.Prefer.String(), "strict": fmt.Sprint(p.Strict), "allow_vendors": strings.Join(p.Allow, ","),
		"deny_vendors": strings.Join(p.Deny, ","), "deterministic": fmt.Sprint(p.Deterministic), "per_op": strings.Join(patterns, ","),
	}
	for key := range values {
		source, ok := p.Sources[oppolicy.Field(key)]
		if !ok {
			source = "default"
		}
		values[key] += " " + source
	}
	return values, nil
}
