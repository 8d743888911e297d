package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/spf13/cobra"
)

// The codes of failures of `primus ops resolve`.
const (
	codePolicy      = "policy"
	codeCatalog     = "catalog"
	codeNoCandidate = "no_candidate"
)

// codedError is a failure with a code for programs.
type codedError struct {
	code string
	error
}

func (e codedError) Unwrap() error { return e.error }

func newOpsResolveCommand(prog cli.Program) *cobra.Command {
	var file string
	var output cli.OutputFormat
	var opts dispatch.Options
	cmd := &cobra.Command{
		Use:   "resolve OP --catalog FILE",
		Short: "Say which implementation of a catalogue the policy selects",
		Long: `Say which implementation of an op the policy of the environment selects from a
catalogue, without loading any source. The catalogue is a JSON list of

  {"op": "…", "impl_id": "…", "kind": "flagos|vendor|reference", "vendor": "…",
   "priority": 100, "available": true}

where op, impl_id, kind and, for the kind vendor, vendor are required. available is
true (also when left out), false, or the reason why not. An object is what a probe
answered: {"return": true} is available, any other is not.

With -o json a failure is {"error": {"code": …, "message": …}} on standard output and
exit code 1; the code is policy for a wrong value in the environment, catalog for a
wrong catalogue and no_candidate when nothing can be selected.`,
		Example: `  primus ops resolve generic_gemm --catalog impls.json
  fleet-inventory | TE_FL_PREFER=vendor primus ops resolve generic_gemm --catalog - -o json`,
		Args: cli.Arguments(1, "ops", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return cli.Usagef(cmd, "no catalogue given, want --catalog FILE")
			}
			log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
			sources := opts.Sources(nil)
			if err := sources.CheckVariables(log); err != nil {
				return err
			}
			r, err := resolveFile(cmd.Context(), sources, args[0], file, cmd.InOrStdin())
			if output == cli.OutputJSON {
				return printResolutionJSON(prog.Out, r, err)
			}
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				log.Warn(w)
			}
			return printExplanations(prog.Out, []fmt.Stringer{r.Explanation})
		},
	}
	cmd.Flags().StringVar(&file, "catalog", "", "`FILE` that lists impls in JSON, or - for standard input")
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

// resolveFile returns the resolution of an op by a catalogue in a file; "-" is stdin.
func resolveFile(ctx context.Context, sources dispatch.Sources, op, file string, stdin io.Reader) (Resolution, error) {
	layers, _, err := sources.Load(ctx)
	if err != nil {
		return Resolution{}, codedError{codePolicy, err}
	}
	entries, err := readCatalogFile(file, stdin)
	if err != nil {
		return Resolution{}, codedError{codeCatalog, err}
	}
	r, err := Resolve(layers.Policy(), op, entries)
	if err != nil {
		return r, codedError{codeNoCandidate, err}
	}
	return r, nil
}

// maxCatalog bounds a file that lists impls.
const maxCatalog = 64 << 20

func readCatalogFile(file string, stdin io.Reader) ([]Entry, error) {
	name, read := file, func(file string) ([]byte, error) { return durable.ReadRegular(file, maxCatalog) }
	if file == "-" {
		name, read = "standard input", func(string) ([]byte, error) { return io.ReadAll(stdin) }
	}
	text, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w; want a JSON file that lists impls, or - for standard input", err)
	}
	return Parse(name, text)
}

// printResolutionJSON prints a resolution, or the error in its place.
func printResolutionJSON(out io.Writer, r Resolution, err error) error {
	if err == nil {
		return cli.WriteJSON(out, r)
	}
	coded, ok := errors.AsType[codedError](err)
	if !ok {
		return err
	}
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	message := strings.ReplaceAll(coded.Error(), "\n", "; ")
	if err := cli.WriteJSON(out, map[string]failure{"error": {coded.code, message}}); err != nil {
		return err
	}
	return cli.ErrReported
}
