package cli

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OutputFormat is the value of -o.
type OutputFormat string

const (
	OutputTable OutputFormat = "table"
	OutputJSON  OutputFormat = "json"
	OutputText  OutputFormat = "text"

	OutputMarkdown OutputFormat = "md"
)

// AddFlag gives a command the flag -o for tables and JSON.
func (o *OutputFormat) AddFlag(cmd *cobra.Command) {
	*o = OutputTable
	addOutput(cmd, o, "table or json", OutputTable, OutputJSON)
}

// OutputWithText also takes text. The zero value leaves the choice to the command.
type OutputWithText struct{ OutputFormat }

// AddFlag gives a command the flag -o.
func (o *OutputWithText) AddFlag(cmd *cobra.Command) {
	addOutput(cmd, o, "text, table or json", OutputText, OutputTable, OutputJSON)
}

// Set implements pflag.Value.
func (o *OutputWithText) Set(s string) error {
	if strings.EqualFold(s, string(OutputText)) {
		o.OutputFormat = OutputText
		return nil
	}
	return o.OutputFormat.Set(s)
}

// TextOrJSON takes text, which is the default, or json.
type TextOrJSON struct{ OutputFormat }

// AddFlag gives a command the flag -o.
func (o *TextOrJSON) AddFlag(cmd *cobra.Command) {
	o.OutputFormat = OutputText
	addOutput(cmd, o, "text or json", OutputText, OutputJSON)
}

// Set implements pflag.Value.
func (o *TextOrJSON) Set(s string) error {
	switch f := OutputFormat(strings.ToLower(s)); f {
	case OutputText, OutputJSON:
		o.OutputFormat = f
		return nil
	}
	return errors.New("unknown format")
}

// ReportFormat also takes md, which is Markdown.
type ReportFormat struct{ OutputFormat }

// AddFlag gives a command the flag -o.
func (o *ReportFormat) AddFlag(cmd *cobra.Command) {
	o.OutputFormat = OutputTable
	addOutput(cmd, o, "table, json or md", OutputTable, OutputJSON, OutputMarkdown)
}

// Set implements pflag.Value.
func (o *ReportFormat) Set(s string) error {
	if strings.EqualFold(s, string(OutputMarkdown)) {
		o.OutputFormat = OutputMarkdown
		return nil
	}
	return o.OutputFormat.Set(s)
}

// addOutput gives a command the flag -o with its completion.
func addOutput(cmd *cobra.Command, value pflag.Value, usage string, formats ...OutputFormat) {
	cmd.Flags().VarP(value, "output", "o", usage)
	if slices.Contains(formats, OutputTable) {
		addWide(cmd)
	}
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
func (o *OutputFormat) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *OutputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (o *OutputFormat) Set(s string) error {
	switch f := OutputFormat(strings.ToLower(s)); f {
	case OutputTable, OutputJSON:
		*o = f
		return nil
	}
	return errors.New("unknown format")
}

// WriteJSON prints a value as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Print writes a result: as JSON, or by text.
func (o OutputFormat) Print(out io.Writer, result any, text func() error) error {
	if o == OutputJSON {
		return WriteJSON(out, result)
	}
	return text()
}

// List returns a copy that is not nil, so that JSON has [] and not null.
func List(items []string) []string { return append([]string{}, items...) }

// ErrReported is the error of a command whose result says what went wrong.
var ErrReported = errors.New("reported")

var (
	_ pflag.Value = (*OutputFormat)(nil)
	_ pflag.Value = (*OutputWithText)(nil)
	_ pflag.Value = (*TextOrJSON)(nil)
	_ pflag.Value = (*ReportFormat)(nil)
)
