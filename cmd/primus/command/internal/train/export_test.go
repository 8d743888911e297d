package train

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
)

// PolicyOf returns the policy that train would use with these arguments, for each key of a policy
// file the value and its source, or what is wrong.
func PolicyOf(args []string) (values map[string]string, problem error) {
	opts, module, err := moduleOf(args)
	if err != nil {
		return nil, err
	}
	sources := opts.PolicySources(module)
	layers, _, err := sources.Load(context.Background())
	if err != nil {
		return nil, err
	}
	p := layers.Policy()
	patterns := []string{}
	for _, rule := range p.PerOp {
		patterns = append(patterns, rule.Pattern)
	}
	view := p.View()
	var rules []string
	for _, rule := range view.Rules {
		rules = append(rules, rule.String())
	}
	values = map[string]string{
		"rules": strings.Join(rules, "; "), "quarantine": view.Quarantine.String(), "verify": view.Verify.String(),
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

// moduleOf returns the options of arguments, and the module that they train.
func moduleOf(args []string) (*Options, *config.Module, error) {
	opts := &Options{}
	cmd := &cobra.Command{Use: "train", DisableFlagParsing: true}
	cmd.SetOut(io.Discard)
	opts.AddFlags(cmd.Flags())
	overrides, err := experiments.ParseTrainArgs(cmd, args)
	if err != nil {
		return nil, nil, err
	}
	experiment, err := opts.Load(context.Background(), "pre_trainer", overrides)
	if err != nil {
		return nil, nil, err
	}
	module, err := experiment.Module("pre_trainer")
	return opts, module, err
}

// Fitting returns how many of some ranks can train together with these arguments.
func Fitting(args []string, ranks int) (int, error) {
	_, module, err := moduleOf(args)
	if err != nil {
		return 0, err
	}
	fits, err := native.Fits(module)
	if err != nil {
		return 0, err
	}
	return fitting(ranks, fits), nil
}
