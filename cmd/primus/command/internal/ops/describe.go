package ops

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// description is an op of `primus ops describe`.
type description struct {
	Op        string     `json:"op"`
	Doc       string     `json:"doc"`
	Formula   string     `json:"formula"`
	Family    string     `json:"family"`
	Tolerance string     `json:"tolerance"` // for f32 and f64
	Narrow    string     `json:"narrow_tolerance"`
	Reason    string     `json:"reason"` // for the tolerances
	Arguments []argument `json:"arguments"`
}

// argument is an argument of an op. The texts are in the notation of package opregistry.
type argument struct {
	Index      int      `json:"index"` // -1 without a form in C
	Name       string   `json:"name"`
	Sort       string   `json:"sort"`
	Access     string   `json:"access"`
	DTypes     string   `json:"dtypes"`
	Shape      string   `json:"shape"`
	Given      string   `json:"given"`
	MayBe      []string `json:"may_be"`
	Contiguous bool     `json:"contiguous"`
	Bound      string   `json:"bound"`
	// Values are those of an enumeration, by their numbers.
	Values map[int]string `json:"values,omitempty"`
}

func newOpsDescribeCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "describe OP…",
		Short: "Show what ops compute, their arguments and what calls are checked against",
		Long: `Show what ops compute, with an example, their arguments, what every call of them is
checked against, and how far results may differ from those of the reference. An example
gives the arguments of a call and what is in its operands afterwards. A name in a shape stands for one
length in all operands of a call, and .. for any number of leading axes, the same in
all; _ is any length and * any number of leading axes, which are not compared; (n) is
a number of elements. The index is that of the argument in primus_call.args; one
without an index has no form in C.`,
		Example: `  primus ops describe generic_gemm
  primus ops describe rmsnorm_fwd rmsnorm_bwd -o json`,
		ValidArgsFunction: dispatch.CompleteOps,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef(cmd, "given no op, want one or several")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []description
			err := graph.WithManager(cmd.Context(), prog, dispatch.Sources{}, func(m *opmanager.Manager, snap *opregistry.Snapshot) error {
				if _, err := explainOps(m, args, nil); err != nil {
					return err
				}
				for _, name := range args {
					i, _ := snap.Index(name)
					all = append(all, describe(snap.Ops()[i]))
				}
				return nil
			})
			if err != nil {
				return err
			}
			return output.Print(prog.Out, all, func() error { return printDescriptions(prog.Out, all) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func describe(op opregistry.Handle) description {
	tol := op.Tolerance()
	d := description{Op: op.Name(), Doc: op.Doc(), Formula: op.Formula(), Family: op.Family(), Tolerance: tol.Wide.String(), Narrow: tol.Narrow.String(), Reason: tol.Reason}
	for _, p := range op.Params() {
		a := argument{
			Index: p.Index, Name: p.Name, Sort: p.Sort.String(), Access: p.Access, DTypes: p.DTypes, Shape: p.Shape,
			Given: p.Given, MayBe: cli.List(p.MayBe), Contiguous: p.Contiguous, Bound: p.Bound, Values: p.Values(),
		}
		if p.Sort == opregistry.SortNone {
			a.Sort = p.Type.String()
		}
		d.Arguments = append(d.Arguments, a)
		for i, l := range p.Lists {
			given := ""
			if l.Optional {
				given = "?"
			}
			d.Arguments = append(d.Arguments, argument{
				Index: -1, Name: fmt.Sprintf("%s[%d], %s", p.Name, i, l.Name), Sort: opregistry.SortTensors.String(), Access: l.Access, DTypes: l.DTypes,
				Shape: l.Shape, Given: given, MayBe: cli.List(l.MayBe),
			})
		}
	}
	slices.SortStableFunc(d.Arguments, func(a, b argument) int {
		if a.Index < 0 || b.Index < 0 {
			return 0 // in the order of the fields
		}
		return a.Index - b.Index
	})
	return d
}

// rules says in words what the columns of an argument do not.
func (a *argument) rules() string {
	var rules []string
	if a.Given == "?" {
		rules = append(rules, "may be left out")
	} else if given, ok := strings.CutPrefix(a.Given, "?:"); ok {
		rules = append(rules, "given with "+given+" only")
	}
	if len(a.MayBe) > 0 {
		rules = append(rules, "may be the same view as "+strings.Join(a.MayBe, " or "))
	}
	if a.Contiguous {
		rules = append(rules, "contiguous")
	}
	if a.Bound != "" {
		rules = append(rules, a.Bound)
	}
	for _, i := range slices.Sorted(maps.Keys(a.Values)) {
		rules = append(rules, fmt.Sprintf("%d %s", i, a.Values[i]))
	}
	return strings.Join(rules, ", ")
}

func printDescriptions(out io.Writer, all []description) error {
	var texts []string
	for _, d := range all {
		head := d.Op + ": " + d.Doc + "\n\n" + strings.TrimRight(d.Formula, "\n") + "\n\n"
		if d.Family != "" {
			head += "family: " + d.Family + "\n"
		}
		head += fmt.Sprintf("results: f32 and f64 %s, narrower %s (%s)\n", d.Tolerance, d.Narrow, d.Reason)
		t := plaintext.NewTable(table.Row{"index", "argument", "form", "access", "dtypes", "shape", "rules"}, 1).
			Optional("index", "form")
		for _, a := range d.Arguments {
			index := "-"
			if a.Index >= 0 {
				index = strconv.Itoa(a.Index)
			}
			t.AppendRow(table.Row{index, a.Name, a.Sort, plaintext.Dash(a.Access), plaintext.Dash(a.DTypes), plaintext.Dash(a.Shape), a.rules()})
		}
		texts = append(texts, head+plaintext.Render(out, t))
	}
	_, err := fmt.Fprintln(out, strings.Join(texts, "\n\n"))
	return err
}
