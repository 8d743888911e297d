package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/serve"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// Graphs returns the fx graphs of the program by name, with what another program adds.
func Graphs(extras ...fx.Option) map[string]fx.Option {
	listens := serve.Config{Addr: "127.0.0.1:0"}
	output := metricsConfig{addr: "127.0.0.1:0", textfile: "run.prom"}
	return map[string]fx.Option{
		"formats": formatsGraph(extras, func(*document.Formats) {}),
		"ops":     opsGraph(appConfig{extras: extras}, func(opsParams) {}),
		"plan":    planGraph(appConfig{extras: extras}, func(planParams) {}),
		"serve":   serveGraph(appConfig{extras: extras}, serviceConfig{serve: listens}),
		"train":   trainGraph(appConfig{extras: extras}, serviceConfig{metrics: output, serve: listens}, func(trainParams) {}),
	}
}

// ParseCatalog reads a catalogue and returns how many impls it lists.
func ParseCatalog(file string, text []byte) (int, error) {
	entries, err := parseCatalog(file, text)
	return len(entries), err
}

// CatalogError is the error of ParseCatalog.
type CatalogError = catalogError

// Golden compares with a file in testdata; Update says whether to rewrite it.
var (
	Golden = golden
	Update = update
)

// DispatchVariables are the names of the variables of dispatch.
func DispatchVariables() []string { return dispatchVariables() }

// PolicyOf returns the policy that train would use with these arguments, for each key of a policy file the value and its
// source, or what is wrong.
func PolicyOf(args []string) (values map[string]string, problem error) {
	var opts trainOptions
	cmd := &cobra.Command{Use: "train", DisableFlagParsing: true}
	cmd.SetOut(io.Discard)
	opts.addFlags(cmd.Flags())
	overrides, err := parseTrainArgs(cmd, args)
	if err != nil {
		return nil, err
	}
	experiment, err := opts.load("pre_trainer", overrides)
	if err != nil {
		return nil, err
	}
	module, err := experiment.Module("pre_trainer")
	if err != nil {
		return nil, err
	}
	sources := opts.policySources(module)
	p, _, err := sources.load()
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
		rules = append(rules, ruleText(rule))
	}
	values = map[string]string{
		"rules": strings.Join(rules, "; "), "quarantine": quarantineText(view.Quarantine), "verify": verifyText(view.Verify),
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
