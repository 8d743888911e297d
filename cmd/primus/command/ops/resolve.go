package ops

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// resolution is the result of `primus ops resolve`.
type resolution struct {
	Policy     oppolicy.View        `json:"policy"`
	Candidates []string             `json:"candidates"` // best first
	Selected   string               `json:"selected"`
	Rejected   []oppolicy.Rejection `json:"rejected"`
	Warnings   []string             `json:"warnings"`

	explained opmanager.Explanation
}

// The codes of failures of `primus ops resolve`.
const (
	codePolicy      = "policy"
	codeCatalog     = "catalog"
	codeNoCandidate = "no_candidate"
)

// codedError is a failure that programs tell by its code.
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef(cmd, "got %d ops, want one", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return cli.Usagef(cmd, "no catalogue given, want --catalog FILE")
			}
			log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
			sources := opts.Sources(nil)
			if err := sources.CheckVariables(log); err != nil {
				return err
			}
			r, err := resolveFile(sources, args[0], file, cmd.InOrStdin())
			if output == cli.OutputJSON {
				return printResolutionJSON(prog.Out, r, err)
			}
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				log.Warn(w)
			}
			return printExplanations(prog.Out, []fmt.Stringer{r.explained})
		},
	}
	cmd.Flags().StringVar(&file, "catalog", "", "`FILE` that lists impls in JSON, or - for standard input")
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

// resolveFile answers for an op of a catalogue in a file, "-" for what stdin has.
func resolveFile(sources dispatch.Sources, op, file string, stdin io.Reader) (resolution, error) {
	policy, _, err := sources.Load()
	if err != nil {
		return resolution{}, codedError{codePolicy, err}
	}
	entries, err := readCatalogFile(file, stdin)
	if err != nil {
		return resolution{}, codedError{codeCatalog, err}
	}
	r, err := resolve(policy, op, entries)
	if err != nil {
		return r, codedError{codeNoCandidate, err}
	}
	return r, nil
}

func readCatalogFile(file string, stdin io.Reader) ([]catalogEntry, error) {
	name, read := file, os.ReadFile
	if file == "-" {
		name, read = "standard input", func(string) ([]byte, error) { return io.ReadAll(stdin) }
	}
	text, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w; want a JSON file that lists impls, or - for standard input", err)
	}
	return ParseCatalog(name, text)
}

// resolve ranks the impls of an op in a catalogue. The error says of every impl why it cannot be
// selected.
func resolve(policy oppolicy.Policy, op string, entries []catalogEntry) (resolution, error) {
	vendor := opregistry.NewRegistry().Snapshot().Vendor
	known := oppolicy.Names{Missing: "which the catalogue does not list"}
	var impls []oppolicy.Candidate
	for _, e := range entries {
		known.Ops = append(known.Ops, e.op)
		known.Impls = append(known.Impls, e.impl.ID)
		if e.impl.Vendor != "" {
			known.Vendors = append(known.Vendors, vendor(e.impl.Vendor))
		}
		if e.op == op {
			impls = append(impls, e.impl)
		}
	}
	r := resolution{
		Policy: policy.View(), explained: opmanager.Explain(policy, op, impls, vendor),
		Candidates: []string{}, Rejected: []oppolicy.Rejection{}, Warnings: append([]string{}, policy.Warnings(known, vendor)...),
	}
	r.Selected = r.explained.Selected
	for _, s := range r.explained.Order {
		r.Candidates = append(r.Candidates, s.ID)
	}
	for _, s := range r.explained.Rejected {
		r.Rejected = append(r.Rejected, oppolicy.Rejection{ID: s.ID, Reason: s.Reason})
	}
	switch {
	case len(impls) == 0:
		return r, fmt.Errorf("op %q: the catalogue lists no impl of it%s", op, suggest.Hint(op, known.Ops))
	case r.Selected == "":
		parts := []string{fmt.Sprintf("op %q: no impl can be selected", op)}
		for _, rej := range r.Rejected {
			parts = append(parts, fmt.Sprintf("impl %q: %s", rej.ID, rej.Reason))
		}
		return r, errors.New(strings.Join(append(parts, r.Warnings...), "; "))
	}
	return r, nil
}

// printResolutionJSON prints a resolution, or the error in its place.
func printResolutionJSON(out io.Writer, r resolution, err error) error {
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
