package command

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// outputFormat is the value of -o.
type outputFormat string

const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
	outputText  outputFormat = "text"
)

// addFlag gives a command the flag -o for tables and JSON.
func (o *outputFormat) addFlag(cmd *cobra.Command) {
	*o = outputTable
	addOutput(cmd, o, "table or json", outputTable, outputJSON)
}

// outputWithText also takes text. The zero value leaves the choice to the command.
type outputWithText struct{ outputFormat }

// addFlag gives a command the flag -o.
func (o *outputWithText) addFlag(cmd *cobra.Command) {
	addOutput(cmd, o, "text, table or json", outputText, outputTable, outputJSON)
}

// Set implements pflag.Value.
func (o *outputWithText) Set(s string) error {
	if strings.EqualFold(s, string(outputText)) {
		o.outputFormat = outputText
		return nil
	}
	return o.outputFormat.Set(s)
}

// addOutput gives a command the flag -o with its completion.
func addOutput(cmd *cobra.Command, value pflag.Value, usage string, formats ...outputFormat) {
	cmd.Flags().VarP(value, "output", "o", usage)
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	complete := cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic("BUG: " + err.Error())
	}
}

// String implements pflag.Value.
func (o *outputFormat) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *outputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (o *outputFormat) Set(s string) error {
	switch f := outputFormat(strings.ToLower(s)); f {
	case outputTable, outputJSON:
		*o = f
		return nil
	}
	return errors.New("unknown format")
}

// writeJSON prints a value for people and programs to read.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// list returns an empty list for none, which JSON shows as such.
func list(items []string) []string { return append([]string{}, items...) }

// errReported is the error of a command that has printed what went wrong as its result.
var errReported = errors.New("reported")

var (
	_ pflag.Value = (*outputFormat)(nil)
	_ pflag.Value = (*outputWithText)(nil)
)
