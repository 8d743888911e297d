package experiments

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TakeOverrides makes a command accept overrides of a module between its flags. run gets them in
// the order given.
func TakeOverrides(prog cli.Program, cmd *cobra.Command, module string, run func(cmd *cobra.Command, overrides []string) error) {
	cmd.DisableFlagParsing = true
	cmd.ValidArgsFunction = CompleteTrain(prog, module)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
			return cmd.Help()
		}
		overrides, err := ParseTrainArgs(cmd, args)
		if err != nil {
			return err
		}
		return run(cmd, overrides)
	}
}

// ParseTrainArgs sets the flags of the command from args and the environment, and returns the other
// tokens: the overrides.
func ParseTrainArgs(cmd *cobra.Command, args []string) ([]string, error) {
	known, overrides, texts, err := SplitArgs(cmd, args)
	if err != nil {
		return nil, err
	}
	if len(texts) > 0 {
		setTexts(cmd, texts)
	}
	if err := cmd.Flags().Parse(known); err != nil {
		return nil, cli.FlagError(cmd, err)
	}
	return overrides, cli.ApplyDefaults(cmd)
}

// textsKey is the annotation of a command that takes texts to train on.
const textsKey = "texts"

// TakeTexts makes a command accept texts to train on, files and folders, beside its overrides.
func TakeTexts(cmd *cobra.Command) { setTexts(cmd, nil) }

// Texts returns the texts that a command was given.
func Texts(cmd *cobra.Command) []string {
	if cmd.Annotations[textsKey] == "" {
		return nil
	}
	return strings.Split(cmd.Annotations[textsKey], "\x00")
}

func setTexts(cmd *cobra.Command, texts []string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[textsKey] = strings.Join(texts, "\x00")
}

// isText reports whether a word names a text: something on the disk that is no experiment.
func isText(cmd *cobra.Command, word string) bool {
	if _, takes := cmd.Annotations[textsKey]; !takes {
		return false
	}
	if word == StandardInput {
		return true
	}
	_, err := os.Stat(word)
	return err == nil && !slices.Contains(graph.ExperimentExtensions(nil), strings.TrimPrefix(filepath.Ext(word), "."))
}

// SplitArgs separates the flags of the command, with their values, from overrides, which are
// key=value, --key=value, --key value or --key alone, and from texts, if the command takes them.
// Any other token is an error.
func SplitArgs(cmd *cobra.Command, args []string) (known, overrides, texts []string, err error) {
	flags := cmd.Flags()
	for i := 0; i < len(args); i++ {
		token := args[i]
		if long, ok := longForm(flags, token); ok {
			token = long
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(token, "-"), "=")
		followed := i+1 < len(args) && !strings.HasPrefix(args[i+1], "--")
		flag := flags.Lookup(name)
		switch {
		case strings.HasPrefix(token, "--") && flag != nil && hasValue:
			known = append(known, token)
		case strings.HasPrefix(token, "--") && flag != nil && flag.NoOptDefVal != "" && !(followed && isSwitch(args[i+1])):
			known = append(known, token)
		case strings.HasPrefix(token, "--") && flag != nil:
			if !followed {
				return nil, nil, nil, cli.Usagef(cmd, "--%s needs a value: %s", flag.Name, cli.Wants(flag))
			}
			known = append(known, token+"="+args[i+1])
			i++
		case token == StandardInput && isText(cmd, token):
			texts = append(texts, token)
		case strings.HasPrefix(token, "-") && !hasValue && !strings.HasPrefix(token, "--"):
			return nil, nil, nil, cli.Usagef(cmd, "unknown flag %s%s", token, cli.FlagHint(flags, name))
		case strings.HasPrefix(token, "--") && cli.FlagHint(flags, name) != "":
			return nil, nil, nil, cli.Usagef(cmd, "unknown flag --%s%s (a parameter of this name is given as %s=VALUE)", name, cli.FlagHint(flags, name), name)
		case hasValue:
			overrides = append(overrides, token)
		case !strings.HasPrefix(token, "--") && isText(cmd, token): // a file or a folder
			texts = append(texts, token)
		case !strings.HasPrefix(token, "--"):
			return nil, nil, nil, strayWord(cmd, token)
		case followed:
			overrides = append(overrides, token, args[i+1])
			i++
		default: // a flag may follow, which would be taken for the value
			overrides = append(overrides, token+"=true")
		}
	}
	return known, overrides, texts, nil
}

// longForm returns -o, -o=json and -ojson as --output and --output=json, for flags that take a
// value.
func longForm(flags *pflag.FlagSet, token string) (string, bool) {
	if len(token) < 2 || token[0] != '-' || token[1] == '-' {
		return "", false
	}
	flag := flags.ShorthandLookup(token[1:2])
	if flag == nil || flag.NoOptDefVal != "" {
		return "", false
	}
	long, value := "--"+flag.Name, strings.TrimPrefix(token[2:], "=")
	if len(token) > 2 {
		long += "=" + value
	}
	return long, true
}

// isSwitch reports whether a token is the value of a flag that may also stand alone.
func isSwitch(token string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on", "0", "false", "no", "off"}, strings.ToLower(token))
}

// strayWord is the error for a word that is neither flag nor override: a command that is written
// wrong, or a file without --config in front.
func strayWord(cmd *cobra.Command, word string) error {
	if slices.Contains(graph.ExperimentExtensions(nil), strings.TrimPrefix(filepath.Ext(word), ".")) {
		return cli.Usagef(cmd, "unexpected argument %q; did you mean --config %s?", word, word)
	}
	if hint := suggest.Hint(word, cli.Subcommands(cmd, (*cobra.Command).Name)); hint != "" {
		return cli.Usagef(cmd, "unknown command %q for %q%s", word, cmd.CommandPath(), hint)
	}
	if _, takes := cmd.Annotations[textsKey]; takes {
		return cli.Usagef(cmd, "there is no file or folder %q here, want a file or a folder of text, key=value, --key value or a flag", word)
	}
	return cli.Usagef(cmd, "unexpected argument %q, want key=value, --key value or a flag", word)
}
