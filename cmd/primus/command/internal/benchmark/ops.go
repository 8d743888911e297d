package benchmark

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// peakHelp says what the figures of the benchmarks of ops mean.
const peakHelp = `Implementations take turns and are called directly, without fallback. One that is not
available or declines is listed with the reason. The share of the peak is that of the FMA
peak of all threads for products and attention, and that of the bandwidth of memory for
other ops, where caches may lift it above 100 %.`

// wrapped joins words to lines of at most width columns. A longer word has a line of its own.
func wrapped(words []string, width int) string {
	var b strings.Builder
	line := 0
	for i, w := range words {
		switch {
		case i == 0:
		case line+1+len(w) > width:
			b.WriteByte('\n')
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(w)
		line += len(w)
	}
	return b.String()
}

func newBenchmarkGemmCommand(prog cli.Program) *cobra.Command {
	var o implBenchmarkOptions
	var shapes, layouts []string
	var groups uint
	var single primusProduct
	cmd := &cobra.Command{
		Use:   "gemm",
		Short: "Measure matrix products on every implementation",
		Long: `Measure generic_gemm on every implementation. A shape is ROWSxCOLSxINNER of D [rows,
cols], which takes 2·rows·cols·inner operations. The layouts are those of a linear
layer's products: forward y = x·Wᵀ, dgrad dx = dy·W and wgrad dW = dyᵀ·x. With --groups
N, measure te_general_grouped_gemm, which computes N such products. --M, --N and --K are
the sizes of one product A [M, K] · B [K, N], of which --trans_a or --trans_b is stored
transposed, as in Primus.

` + peakHelp,
		Example: `  primus benchmark gemm --shape 2048x1536x512 --layout forward,dgrad,wgrad
  primus benchmark gemm --impl default.flagos,vendor.onednn --threads 1 -o csv
  primus benchmark gemm --shape 256x1408x512 --groups 8 --dtype f32,bf16
  primus benchmark gemm --M 4096 --N 4096 --K 4096 --dtype bf16 --duration 10
  primus benchmark gemm --shape 1024x1024x1024 --shape 4096x4096x4096 --plot gemm.png`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dtypes, err := o.check(cmd)
			if err != nil {
				return err
			}
			for _, l := range layouts {
				if !slices.Contains(opbench.Layouts(), opbench.Layout(l)) {
					return cli.Usagef(cmd, "--layout: given %q, want forward, dgrad or wgrad%s", l, suggest.Hint(l, []string{"forward", "dgrad", "wgrad"}))
				}
			}
			if err := single.replace(cmd, &shapes, &layouts); err != nil {
				return err
			}
			var cases caseSet
			for _, s := range shapes {
				n, err := parseSizes(cmd, s, "ROWSxCOLSxINNER", 3)
				if err != nil {
					return err
				}
				for _, l := range layouts {
					cases = append(cases, func(m *opbench.Maker) ([]opbench.Case, error) {
						if groups > 0 {
							c, err := m.GroupedGEMM(int(groups), n[0], n[1], n[2], opbench.Layout(l))
							return []opbench.Case{c}, err
						}
						c, err := m.GEMM(n[0], n[1], n[2], opbench.Layout(l))
						return []opbench.Case{c}, err
					})
				}
			}
			if err := checkPlot(cmd, o.plot); err != nil {
				return err
			}
			return runImplBenchmark(cmd, prog, o, dtypes, cases)
		},
	}
	cmd.Flags().StringSliceVar(&shapes, "shape", []string{"512x512x512", "1024x1024x1024"}, "`ROWSxCOLSxINNER`; may be repeated")
	cmd.Flags().StringSliceVar(&layouts, "layout", []string{"forward"}, "forward, dgrad or wgrad; several separated by commas")
	single.addFlags(cmd.Flags())
	cmd.Flags().UintVar(&groups, "groups", 0, "`N` products in one call of the grouped op; 0 is the plain op")
	o.addFlags(cmd)
	return cmd
}

// primusProduct is one product as Primus describes it.
type primusProduct struct {
	m, n, k        int
	transA, transB bool
}

// primusSize is a size that Primus gives a product by default.
const primusSize = 4096

func (p *primusProduct) addFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&p.m, "M", "M", primusSize, "`M` rows of the result, in place of --shape")
	flags.IntVarP(&p.n, "N", "N", primusSize, "`N` columns of the result")
	flags.IntVarP(&p.k, "K", "K", primusSize, "sums of `K` products")
	flags.BoolVar(&p.transA, "trans_a", false, "A is stored as [K, M]: the layout wgrad")
	flags.BoolVar(&p.transB, "trans_b", false, "B is stored as [N, K]: the layout forward")
}

// replace sets the shape and the layout of the product if any flag of it is given.
func (p *primusProduct) replace(cmd *cobra.Command, shapes, layouts *[]string) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	if !slices.ContainsFunc([]string{"M", "N", "K", "trans_a", "trans_b"}, given) {
		return nil
	}
	if given("shape") || given("layout") {
		return cli.Usagef(cmd, "--shape and --layout: given together with --M, --N, --K, --trans_a or --trans_b, want one or the other")
	}
	layout := opbench.DGrad
	switch {
	case p.transA && p.transB:
		return cli.Usagef(cmd, "--trans_a and --trans_b: given both, want one of them: no layer has such a product")
	case p.transA:
		layout = opbench.WGrad
	case p.transB:
		layout = opbench.Forward
	}
	*shapes = []string{fmt.Sprintf("%dx%dx%d", p.m, p.n, p.k)}
	*layouts = []string{string(layout)}
	return nil
}

func newBenchmarkAttentionCommand(prog cli.Program) *cobra.Command {
	var o implBenchmarkOptions
	var shapes []string
	var mask, pass string
	masks := map[string]attention.MaskType{attention.CausalMask.String(): attention.CausalMask, attention.NoMask.String(): attention.NoMask}
	cmd := &cobra.Command{
		Use:   "attention",
		Short: "Measure attention on every implementation",
		Long: `Measure fused_attn_fwd and fused_attn_bwd on every implementation. A shape is
BATCHxSEQxHEADSxGROUPSxDIM, with GROUPS heads of keys and values. Forward counts as
4·batch·heads·seq²·dim operations, under the causal mask as half of them, and backward as
2.5 times forward.

` + peakHelp,
		Example: `  primus benchmark attention --shape 4x512x8x8x64
  primus benchmark attention --shape 1x2048x16x4x64 --pass forward --mask no_mask -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dtypes, err := o.check(cmd)
			if err != nil {
				return err
			}
			kind, ok := masks[mask]
			if !ok {
				return cli.Usagef(cmd, "--mask: given %q, want causal or no_mask", mask)
			}
			if !slices.Contains([]string{"forward", "backward", "both"}, pass) {
				return cli.Usagef(cmd, "--pass: given %q, want forward, backward or both", pass)
			}
			var cases caseSet
			for _, s := range shapes {
				n, err := parseSizes(cmd, s, "BATCHxSEQxHEADSxGROUPSxDIM", 5)
				if err != nil {
					return err
				}
				if n[2]%n[3] != 0 {
					return cli.Usagef(cmd, "--shape %s: given %d groups, want a divisor of the %d heads", s, n[3], n[2])
				}
				cases = append(cases, func(m *opbench.Maker) ([]opbench.Case, error) {
					fwd, bwd, err := m.Attention(n[0], n[1], n[2], n[3], n[4], kind, nil)
					switch pass {
					case "forward":
						return []opbench.Case{fwd}, err
					case "backward":
						return []opbench.Case{bwd}, err
					}
					return []opbench.Case{fwd, bwd}, err
				})
			}
			if err := checkPlot(cmd, o.plot); err != nil {
				return err
			}
			return runImplBenchmark(cmd, prog, o, dtypes, cases)
		},
	}
	cmd.Flags().StringSliceVar(&shapes, "shape", []string{"4x512x8x8x64"}, "`BATCHxSEQxHEADSxGROUPSxDIM`; may be repeated")
	cmd.Flags().StringVar(&mask, "mask", attention.CausalMask.String(), "causal or no_mask")
	cmd.Flags().StringVar(&pass, "pass", "both", "forward, backward or both")
	o.addFlags(cmd)
	return cmd
}

func newBenchmarkOpsCommand(prog cli.Program) *cobra.Command {
	var o implBenchmarkOptions
	var shapes []string
	cmd := &cobra.Command{
		Use:   "ops [OP…]",
		Short: "Measure memory-bound ops on every implementation",
		Long: `Measure memory-bound ops on every implementation: those given, or all of these:

` + wrapped(opbench.Ops(), 90) + `

A shape is ROWSxCOLS: tokens and their width, or the vocabulary of cross entropy, or the
size of the weights that an optimizer updates.

` + peakHelp,
		Example: `  primus benchmark ops
  primus benchmark ops rmsnorm_fwd rmsnorm_bwd --shape 2048x512 --impl default.flagos
  primus benchmark ops multi_tensor_adam --shape 4096x4096 -o csv --plot adam.png`,
		ValidArgs: opbench.Ops(),
		RunE: func(cmd *cobra.Command, names []string) error {
			dtypes, err := o.check(cmd)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				names = opbench.Ops()
			}
			var cases caseSet
			for _, s := range shapes {
				n, err := parseSizes(cmd, s, "ROWSxCOLS", 2)
				if err != nil {
					return err
				}
				for _, name := range names {
					if !slices.Contains(opbench.Ops(), name) {
						return cli.Usagef(cmd, "op %q is not measured here%s", name, suggest.Hint(name, opbench.Ops()))
					}
					cases = append(cases, func(m *opbench.Maker) ([]opbench.Case, error) {
						c, err := m.Op(name, n[0], n[1])
						return []opbench.Case{c}, err
					})
				}
			}
			if err := checkPlot(cmd, o.plot); err != nil {
				return err
			}
			return runImplBenchmark(cmd, prog, o, dtypes, cases)
		},
	}
	cmd.Flags().StringSliceVar(&shapes, "shape", []string{"2048x512"}, "`ROWSxCOLS`; may be repeated")
	o.addFlags(cmd)
	return cmd
}

// parseSizes reads positive numbers with x between them.
func parseSizes(cmd *cobra.Command, text, form string, want int) ([]int, error) {
	parts := strings.Split(strings.ToLower(text), "x")
	sizes := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, cli.Usagef(cmd, "--shape: given %q, want %s of numbers from 1", text, form)
		}
		sizes[i] = n
	}
	if len(sizes) != want {
		return nil, cli.Usagef(cmd, "--shape: given %q with %s, want %s", text, plaintext.Quantity(len(sizes), "size", "sizes"), form)
	}
	return sizes, nil
}
