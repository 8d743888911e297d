package command

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// outputFormat is the value of -o.
type outputFormat string

const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
)

func (o *outputFormat) addFlag(flags *pflag.FlagSet) {
	*o = outputTable
	flags.VarP(o, "output", "o", "table or json")
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
	return fmt.Errorf("got %q, want table or json", s)
}
