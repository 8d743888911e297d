package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsageError marks a mistake on the command line or in the environment.
type UsageError struct{ Err error }

func (e UsageError) Unwrap() error { return e.Err }

func (e UsageError) Error() string { return e.Err.Error() }

// Usagef returns a usage error that points to the help of a command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return UsageError{fmt.Errorf(format+"; see %s --help", append(args, cmd.CommandPath())...)}
}

// SubcommandOnly is the argument validator of commands that only have subcommands.
func SubcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommand(cmd, args[0])
}

// Group returns a command that only has subcommands.
func Group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: SubcommandOnly, RunE: ShowHelp}
	cmd.AddCommand(subcommands...)
	return cmd
}

// NoArgs is the argument validator of commands that take none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef(cmd, "unexpected argument %q", args[0])
}

// Arguments returns the argument validator of a command that takes n arguments. many is the noun
// for what was given, and want describes what the command takes.
func Arguments(n int, many, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef(cmd, "given %d %s, want %s", len(args), many, want)
		}
		return nil
	}
}

// UnknownCommand returns the error for a word that names no subcommand. It suggests the most
// similar name of a command, here or elsewhere in the program.
func UnknownCommand(cmd *cobra.Command, word string) error {
	hint := suggest.Hint(word, Subcommands(cmd, (*cobra.Command).Name))
	if hint == "" {
		for _, sub := range cmd.Root().Commands() {
			if name, ok := suggest.Nearest(word, Subcommands(sub, (*cobra.Command).Name)); ok && sub.Name() != "completion" {
				hint = fmt.Sprintf("; did you mean %q?", sub.CommandPath()+" "+name)
			}
		}
	}
	return Usagef(cmd, "unknown command %q for %q%s", word, cmd.CommandPath(), hint)
}

// Subcommands returns the result of name for each visible subcommand.
func Subcommands(cmd *cobra.Command, name func(*cobra.Command) string) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, name(sub))
		}
	}
	return names
}

// FlagError returns an error of pflag in the form of the other usage errors.
func FlagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return UnknownCommand(cmd, words[0])
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		if unknown.GetSpecifiedShortnames() != "" {
			return Usagef(cmd, "unknown flag -%s%s", unknown.GetSpecifiedShortnames(), FlagHint(cmd.Flags(), unknown.GetSpecifiedShortnames()))
		}
		return Usagef(cmd, "unknown flag --%s%s", unknown.GetSpecifiedName(), FlagHint(cmd.Flags(), unknown.GetSpecifiedName()))
	case errors.As(err, &invalid):
		return Usagef(cmd, "--%s: given %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), Wants(invalid.GetFlag()))
	case errors.As(err, &bare):
		return Usagef(cmd, "--%s needs a value: %s", bare.GetFlag().Name, Wants(bare.GetFlag()))
	}
	return Usagef(cmd, "%w", err)
}

// FlagHint returns a suggestion if the name of a flag is similar to one that exists.
func FlagHint(flags *pflag.FlagSet, given string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name, ok := suggest.Nearest(given, names); ok {
		return "; did you mean --" + name + "?"
	}
	return ""
}

// wanter is implemented by values of flags that describe what the flag takes.
type wanter interface{ Wants() string }

// Wants describes the values that a flag takes.
func Wants(f *pflag.Flag) string {
	if v, ok := f.Value.(wanter); ok {
		return v.Wants()
	}
	switch strings.TrimPrefix(strings.TrimPrefix(f.Name, "from-"), "to-") {
	case "catalog":
		return "a JSON file that lists impls, or - for standard input"
	case "config":
		return "an experiment file"
	case "metrics-addr", "serve", "listen":
		return "HOST:PORT, such as 127.0.0.1:9400"
	case "metrics-textfile":
		return "a file that ends with .prom"
	case "gpu-arch":
		return "the name of a device, such as MI300X"
	case "memory", "reserve":
		return "a size such as 192GB or 80GiB"
	case "memory-safety-margin":
		return "a fraction from 0 to 1"
	case "dist-timeout-sec", "wait-timeout-sec":
		return "a number of seconds"
	case "efficiency":
		return "a fraction above 0 and up to 1"
	case "measured-tflops", "peak-bf16-tflops", "peak-fp8-tflops":
		return "a number of TFLOP/s"
	case "memory-bandwidth", "intra-node-bandwidth", "inter-node-bandwidth":
		return "a number of GB/s"
	case "target-nodes", "nproc-per-node", "nodes", "node-rank", "master-port":
		return "a whole number, 0 for the default"
	case "peak-tflops":
		return "a number of TFLOP/s, 0 when it is not known"
	case "fleet":
		return "endpoints of etcd separated by commas, such as 10.0.0.1:2379"
	case "fleet-prefix":
		return "a prefix of keys, such as /primus"
	case "fleet-ca", "fleet-cert", "fleet-key":
		return "a PEM file"
	case "expect":
		return "the revision of a policy, 0 for none"
	case "patience", "linger", "grace":
		return "a time such as 10s"
	case "threads":
		return "a number of threads, 0 for one per CPU"
	case "token-file", "serve-token-file":
		return "a file with one token per line"
	case "policy":
		return "a policy file"
	case "for":
		return "the address of the service of a run, such as 127.0.0.1:9400"
	case "plugin-modules":
		return "shared libraries separated by commas, such as ./libacme_ops.so"
	case "plugin-dir":
		return "a directory with plugins"
	case "plugin-timeout":
		return "a time such as 10s or 1m"
	case "isolate-plugins":
		return "true, false or names of plugins separated by commas"
	case "prefer":
		return "flagos, vendor or reference"
	case "allow-vendors", "deny-vendors":
		return "names of vendors separated by commas, such as acme,nvidia"
	case "per-op":
		return "orders such as rmsnorm_fwd=vendor:acme|flagos"
	case "export-config":
		return "a file that ends with .yaml, .yml, .json or .toml"
	case "module":
		return "the name of a module, such as pre_trainer"
	case "primus":
		return "VERSION, =DIR or VERSION=DIR"
	case "checkpoint", "model":
		return "a directory with weights: a checkpoint, a run or a folder of Hugging Face"
	case "timeout":
		return "a time such as 90s"
	case "with":
		return "MODULE, MODULE@VERSION or MODULE=DIR"
	case "strict-config", "origin":
		return "true or false"
	case "output":
		return f.Usage
	case "backend-path", "configs-dir", "data-path":
		return "a directory"
	case "patches":
		return "ids of patches separated by commas, all or none"
	case "steps", "warmup":
		return "a number of steps"
	case "groups":
		return "a number of products, 0 for the plain op"
	case "repeat":
		return "a number of samples"
	case "impl":
		return "ids of impls separated by commas, such as default.flagos,vendor.onednn"
	}
	switch f.Value.Type() {
	case "uint":
		return "a whole number, 0 or more"
	case "int":
		return "a whole number"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 10s"
	case "stringArray":
		return "a value in each of the repeated flags"
	case "stringSlice":
		return "values separated by commas"
	}
	return f.Value.Type()
}

// ShowHelp is the RunE of a command that only has subcommands.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
