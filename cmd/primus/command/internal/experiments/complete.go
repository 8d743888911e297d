package experiments

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
)

// overrideCompleter completes arguments that are overrides of an experiment: their names, and the
// values of those that have few.
type overrideCompleter struct {
	prog   cli.Program
	module string // that the overrides are for; "" means the first one
}

// CompleteTrain completes the arguments of commands whose flags cobra does not parse: values of
// flags, and overrides.
func CompleteTrain(prog cli.Program, module string) cobra.CompletionFunc {
	o := overrideCompleter{prog, module}
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if name, value, ok := strings.Cut(begun, "="); ok && strings.HasPrefix(name, "--") {
			if complete, ok := cmd.GetFlagCompletionFunc(strings.TrimPrefix(name, "--")); ok {
				return complete(cmd, args, value)
			}
		}
		if len(args) > 0 {
			last := args[len(args)-1]
			if long, ok := longForm(cmd.Flags(), last); ok {
				last = long
			}
			flag := cmd.Flags().Lookup(strings.TrimPrefix(last, "--"))
			if strings.HasPrefix(last, "--") && flag != nil && flag.NoOptDefVal == "" {
				return completeTrainFlag(prog, cmd, flag.Name, args, begun)
			}
		}
		return o.complete(cmd, args, begun)
	}
}

// completeTrainFlag completes the value of a flag.
func completeTrainFlag(prog cli.Program, cmd *cobra.Command, name string, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if complete, ok := cmd.GetFlagCompletionFunc(name); ok {
		return complete(cmd, args, begun)
	}
	switch {
	case name == "config", name == "export-config":
		return graph.ExperimentExtensions(prog.Extras), cobra.ShellCompDirectiveFilterFileExt
	case name == "launcher":
		return cli.Matching(launch.Launchers(), begun)
	case name == "policy", name == "launcher-file":
		return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case slices.Contains([]string{"fleet-ca", "fleet-cert", "fleet-key"}, name):
		return []cobra.Completion{"pem", "crt", "key"}, cobra.ShellCompDirectiveFilterFileExt
	case slices.Contains([]string{"configs-dir", "data-path", "backend-path"}, name):
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// complete completes key=value and --key=value by the experiment that --config names.
func (o overrideCompleter) complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	bare := strings.TrimPrefix(begun, "--")
	dashes := strings.TrimSuffix(begun, bare)
	name, value, hasValue := strings.Cut(bare, "=")
	parameters := o.parameters(cmd, args)
	if !hasValue {
		names := make([]string, len(parameters))
		for i, p := range parameters {
			names[i] = dashes + p.Name + "="
		}
		return cli.Matching(names, begun)
	}
	i := slices.IndexFunc(parameters, func(p document.Parameter) bool { return p.Name == name })
	switch {
	case i >= 0 && parameters[i].Values != nil && dashes != "": // the scripts of shells ask for the value alone
		return cli.Matching(parameters[i].Values, value)
	case i >= 0 && parameters[i].Values != nil:
		var whole []string
		for _, v := range parameters[i].Values {
			whole = append(whole, name+"="+v)
		}
		return cli.Matching(whole, begun)
	case strings.HasSuffix(name, "_path") || name == "load" || name == "save":
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// parameters returns the parameters that may be overridden: those that the experiment and its
// presets set, and those that the backend and its patches read. Completion cannot report errors, so
// there are none if the experiment does not load.
func (o overrideCompleter) parameters(cmd *cobra.Command, args []string) []document.Parameter {
	if cmd.DisableFlagParsing {
		if _, err := ParseTrainArgs(cmd, args); err != nil {
			return nil
		}
	} else if err := cli.ApplyDefaults(cmd); err != nil {
		return nil
	}
	file := cmd.Flags().Lookup("config").Value.String()
	dirs, err := cmd.Flags().GetStringArray("configs-dir")
	if file == "" || err != nil {
		return nil
	}
	if file == StandardInput {
		return nil // which is for the command
	}
	experiment, err := (&PresetOptions{ConfigsDirs: dirs, Program: o.prog}).Read(cmd.Context(), filepath.Clean(file), nil)
	if err != nil || len(experiment.Modules) == 0 {
		return nil
	}
	module := experiment.Modules[0]
	if named, err := experiment.Module(o.module); err == nil {
		module = named
	}
	found := map[string][]string{"exp_name": nil, "user_name": nil, "work_group": nil, "workspace": nil}
	addParams(found, module.Params, "")
	found[backend.DispatchPrefix+"prefer"] = cli.KindNames()
	err = graph.WithBackends(cmd.Context(), o.prog, slog.New(slog.DiscardHandler), func(p graph.PlanParams) error {
		for _, patch := range p.Patches.All() {
			if patch.Backend == "" || patch.Backend == module.Framework {
				for _, key := range patch.Keys {
					if _, ok := found[key]; !ok {
						found[key] = nil
					}
				}
			}
		}
		factory, err := p.Backends.Get(module.Framework)
		if err != nil {
			return err
		}
		if lister, ok := factory.New().(backend.ParameterLister); ok {
			for _, parameter := range lister.Parameters() {
				found[parameter.Name] = parameter.Values
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return sortedParameters(found)
}

// addParams adds the leaves below m; those that are bools have two values.
func addParams(found map[string][]string, m *document.Map, path string) {
	for key, value := range m.All() {
		at := document.JoinPath(path, key)
		switch nested, ok := value.Map(); {
		case ok:
			addParams(found, nested, at)
		case value.Kind() == document.KindBool:
			found[at] = []string{"true", "false"}
		default:
			found[at] = nil
		}
	}
}

func sortedParameters(found map[string][]string) []document.Parameter {
	var all []document.Parameter
	for name, values := range found {
		all = append(all, document.Parameter{Name: name, Values: values})
	}
	slices.SortFunc(all, func(a, b document.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return all
}
