package plugins

import (
	"errors"
	"fmt"
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/spf13/cobra"
)

func newPluginsReportCommand(prog cli.Program) *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Show the reports on plugins as one HTML page",
		Long: `Show the reports that primus plugins check -o json writes as one HTML page: a table of
all ops and vendors, with what is right, how fast it is beside flagos and what part of
the machine it reaches, then each report. The page needs no other file and asks no
server for anything.`,
		Example: `  primus plugins report acme.report.json other.report.json --output ops.html
  primus plugins report *.report.json > ops.html`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usagef(cmd, "given no report, want FILE…")
			}
			reports, err := readReports(files)
			if err != nil {
				return err
			}
			write := func(w io.Writer) error { return check.Page(w, reports) }
			if target != "" {
				return durable.WriteFile(target, write)
			}
			return write(prog.Out)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&target, "output", "", "write the page to `FILE` instead of the standard output")
	return cmd
}

// readReports reads all reports, and joins the faults of the files.
func readReports(files []string) ([]*check.Report, error) {
	var all []*check.Report
	var faults []error
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			faults = append(faults, fmt.Errorf("report %s: %w", file, err))
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(faults...)
}

func readReport(file string) (*check.Report, error) {
	f, err := durable.OpenRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return check.Read(f)
}
