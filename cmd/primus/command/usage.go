package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError marks a mistake on the command line or in the environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef returns a usage error that points to the help of a command.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return usageError{fmt.Errorf(format+"; see %s --help", append(args, cmd.CommandPath())...)}
}

// didYouMean returns the hint for a name that is near to one of these, "" when none is.
func didYouMean(given string, names []string, format string) string {
	if name, ok := suggest.Nearest(given, names); ok {
		return fmt.Sprintf("; did you mean "+format+"?", name)
	}
	return ""
}

// subcommandOnly is the argument validator of commands that only have subcommands.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

// noArgs is the argument validator of commands that take none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef(cmd, "unexpected argument %q", args[0])
}

// unknownCommand returns the error for a word that names no subcommand, with the nearest name that one has, here or
// anywhere else on the command line.
func unknownCommand(cmd *cobra.Command, word string) error {
	hint := didYouMean(word, subcommands(cmd, (*cobra.Command).Name), "%q")
	if hint == "" {
		for _, sub := range cmd.Root().Commands() {
			if name, ok := suggest.Nearest(word, subcommands(sub, (*cobra.Command).Name)); ok && sub.Name() != "completion" {
				hint = fmt.Sprintf("; did you mean %q?", sub.CommandPath()+" "+name)
			}
		}
	}
	return usagef(cmd, "unknown command %q for %q%s", word, cmd.CommandPath(), hint)
}

// subcommands returns what name says about each visible subcommand.
func subcommands(cmd *cobra.Command, name func(*cobra.Command) string) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, name(sub))
		}
	}
	return names
}

// flagError puts the errors of flags into the words of the other errors.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownCommand(cmd, words[0])
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef(cmd, "unknown flag -%s%s", unknown.GetSpecifiedShortnames(), flagHint(cmd.Flags(), unknown.GetSpecifiedShortnames()))
		}
		return usagef(cmd, "unknown flag --%s%s", unknown.GetSpecifiedName(), flagHint(cmd.Flags(), unknown.GetSpecifiedName()))
	case errors.As(err, &invalid):
		return usagef(cmd, "--%s: got %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), wants(invalid.GetFlag()))
	case errors.As(err, &bare):
		return usagef(cmd, "--%s needs a value: %s", bare.GetFlag().Name, wants(bare.GetFlag()))
	}
	return usagef(cmd, "%w", err)
}

// flagHint returns the hint for the name of a flag that is near to one that exists.
func flagHint(flags *pflag.FlagSet, given string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return didYouMean(given, names, "--%s")
}

// wants says what values a flag takes. A value with a method Wants says so itself.
func wants(f *pflag.Flag) string {
	if v, ok := f.Value.(interface{ Wants() string }); ok {
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
	case "peak-tflops":
		return "a number of TFLOP/s, 0 when it is not known"
	case "fleet":
		return "endpoints of etcd with commas, such as 10.0.0.1:2379"
	case "fleet-prefix":
		return "a prefix of keys, such as /primus"
	case "fleet-ca", "fleet-cert", "fleet-key":
		return "a PEM file"
	case "expect":
		return "the revision of a policy, 0 for none"
	case "patience", "linger", "grace":
		return "a time such as 10s"
	case "threads":
		return "a number of threads, 0 for one a CPU"
	case "token-file", "serve-token-file":
		return "a file with one token a line"
	case "policy":
		return "a policy file"
	case "for":
		return "the address of the service of a run, such as 127.0.0.1:9400"
	case "plugin-modules":
		return "shared libraries with commas, such as ./libacme_ops.so"
	case "plugin-dir":
		return "a directory with plugins"
	case "plugin-timeout":
		return "a time such as 10s or 1m"
	case "isolate-plugins":
		return "true, false or names of plugins with commas"
	case "prefer":
		return "flagos, vendor or reference"
	case "allow-vendors", "deny-vendors":
		return "names of vendors with commas, such as acme,nvidia"
	case "per-op":
		return "orders such as rmsnorm_fwd=vendor:acme|flagos"
	case "export-config":
		return "a file that ends with .yaml, .yml, .json or .toml"
	case "module":
		return "the name of a module, such as pre_trainer"
	case "primus":
		return "VERSION, =DIR or VERSION=DIR"
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
		return "ids of patches with commas, all or none"
	case "steps", "warmup":
		return "a number of steps"
	case "groups":
		return "a number of products, 0 for the plain op"
	case "repeat":
		return "a number of samples"
	case "impl":
		return "ids of impls with commas, such as default.flagos,vendor.onednn"
	}
	return f.Value.Type()
}
