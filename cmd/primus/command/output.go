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
)

// addFlag gives a command the flag -o.
func (o *outputFormat) addFlag(cmd *cobra.Command) {
	*o = outputTable
	cmd.Flags().VarP(o, "output", "o", "table or json")
	formats := cobra.FixedCompletions([]string{string(outputTable), string(outputJSON)}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
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

// errReported is the error of a command that has printed what went wrong as its result.
var errReported = errors.New("reported")

var _ pflag.Value = (*outputFormat)(nil)
