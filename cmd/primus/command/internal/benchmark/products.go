package benchmark

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
)

// product is a product of a model with the name of the layer that computes it: y [rows, cols] = x
// [rows, inner] · Wᵀ.
type product struct {
	layer             string
	rows, cols, inner int
}

// size is a size of a model with the flag that sets it.
type size struct {
	flag  string
	value int // without the flag and without a model
}

// family is a family of models whose products a command measures.
type family struct {
	name, short, products string
	sizes                 []size
	models                map[string][]int // in the order of sizes
	of                    func(n map[string]int) []product
}

// The sizes are those of the models' own configurations, the layers those that Primus measures.
var families = []family{
	{
		name: "gemm-dense", short: "Measure the products of a dense model on every implementation",
		products: "attn_qkv, attn_out, mlp_up (with the gate), mlp_down and vocab",
		sizes: []size{
			{"seqlen", 2048}, {"hidden-size", 4096}, {"intermediate-size", 11008}, {"num-attention-heads", 32}, {"num-key-value-heads", 32},
			{"head-dim", 128}, {"vocab-size", 32000},
		},
		models: map[string][]int{
			"Llama2_7B":     {4096, 4096, 11008, 32, 32, 128, 32000},
			"Llama2_70B":    {4096, 8192, 28672, 64, 8, 128, 32000},
			"Llama3.1_8B":   {8192, 4096, 14336, 32, 8, 128, 128256},
			"Llama3.1_70B":  {8192, 8192, 28672, 64, 8, 128, 128256},
			"Llama3.1_405B": {8192, 16384, 53248, 128, 8, 128, 128256},
			"Mistral_8x7B":  {4096, 4096, 14336, 32, 8, 128, 32000},
			"Mistral_8x22B": {4096, 6144, 16384, 48, 8, 128, 32000},
		},
		of: func(n map[string]int) []product {
			rows, hidden := n["seqlen"], n["hidden-size"]
			heads := n["num-attention-heads"] * n["head-dim"]
			return []product{
				{"attn_qkv", rows, heads + 2*n["num-key-value-heads"]*n["head-dim"], hidden},
				{"attn_out", rows, hidden, heads},
				{"mlp_up", rows, 2 * n["intermediate-size"], hidden},
				{"mlp_down", rows, hidden, n["intermediate-size"]},
				{"vocab", rows, n["vocab-size"], hidden},
			}
		},
	},
	{
		name: "gemm-deepseek", short: "Measure the products of a DeepSeek model on every implementation",
		products: `those of latent attention, the router, shared experts, one expert with an even
share of the tokens, and vocab`,
		sizes: []size{
			{"seqlen", 4096}, {"hidden-size", 4096}, {"intermediate-size", 12288}, {"kv-lora-rank", 512}, {"moe-intermediate-size", 1536},
			{"num-attention-heads", 64}, {"num-experts-per-tok", 6}, {"n-routed-experts", 128}, {"n-shared-experts", 2}, {"q-lora-rank", 0},
			{"qk-nope-head-dim", 128}, {"qk-rope-head-dim", 64}, {"v-head-dim", 128}, {"vocab-size", 128256},
		},
		models: map[string][]int{
			"Deepseek_V2_Lite": {4096, 2048, 10944, 512, 1408, 16, 6, 64, 2, 0, 128, 64, 128, 102400},
			"Deepseek_V2":      {4096, 5120, 12288, 512, 1536, 128, 6, 160, 2, 1536, 128, 64, 128, 102400},
			"Deepseek_V3":      {4096, 7168, 18432, 512, 2048, 128, 8, 256, 1, 1536, 128, 64, 128, 129280},
		},
		of: func(n map[string]int) []product {
			rows, hidden, heads, latent := n["seqlen"], n["hidden-size"], n["num-attention-heads"], n["kv-lora-rank"]
			query := heads * (n["qk-nope-head-dim"] + n["qk-rope-head-dim"])
			all := []product{{"attn_q", rows, query, hidden}}
			if down := n["q-lora-rank"]; down > 0 {
				all = []product{{"attn_q_down", rows, down, hidden}, {"attn_q_up", rows, query, down}}
			}
			all = append(all,
				product{"attn_kv_down", rows, latent + n["qk-rope-head-dim"], hidden},
				product{"attn_kv_up", rows, heads * (n["qk-nope-head-dim"] + n["v-head-dim"]), latent},
				product{"attn_out", rows, hidden, heads * n["v-head-dim"]},
				product{"router", rows, n["n-routed-experts"], hidden})
			if n["n-shared-experts"] > 0 {
				all = append(all, product{"shared_gateup", rows, 2 * n["intermediate-size"], hidden}, product{"shared_down", rows, hidden, n["intermediate-size"]})
			}
			share := max(1, rows*n["num-experts-per-tok"]/max(1, n["n-routed-experts"]))
			return append(all,
				product{"moe_gateup", share, 2 * n["moe-intermediate-size"], hidden},
				product{"moe_down", share, hidden, n["moe-intermediate-size"]},
				product{"vocab", rows, n["vocab-size"], hidden})
		},
	}}

// newProductsCommand returns the command that measures the products of a family.
func newProductsCommand(prog cli.Program, f family) *cobra.Command {
	var o implBenchmarkOptions
	var model string
	var batch int
	given := make([]int, len(f.sizes))
	names := slices.Sorted(maps.Keys(f.models))
	cmd := &cobra.Command{
		Use: f.name, Short: f.short,
		Long: fmt.Sprintf(`Measure the products of a layer, forward and both gradients, on every implementation:
%s.
--model is one of

%s

whose sizes single flags replace. Sizes of a model take seconds to minutes for each
product on a CPU; --seqlen makes them smaller.

%s`, f.products, wrapped(names, 88), peakHelp),
		Example: fmt.Sprintf(`  primus benchmark %[1]s --model %[2]s --seqlen 256
  primus benchmark %[1]s --model %[2]s --dtype bf16 --output-file report.md`, f.name, names[0]),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dtypes, err := o.check(cmd)
			if err != nil {
				return err
			}
			known := f.models[names[0]]
			if model != "" {
				i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, model) })
				if i < 0 {
					return cli.Usagef(cmd, "--model: given %q, want one of %s%s", model, strings.Join(names, ", "), suggest.Hint(model, names))
				}
				known = f.models[names[i]]
			}
			n := map[string]int{}
			for i, s := range f.sizes {
				n[s.flag] = given[i]
				if model != "" && !cmd.Flags().Changed(s.flag) {
					n[s.flag] = known[i]
				}
				if zero := s.value == 0 || s.flag == "n-shared-experts"; n[s.flag] < 0 || n[s.flag] == 0 && !zero {
					return cli.Usagef(cmd, "--%s: given %d, want a number from 1", s.flag, n[s.flag])
				}
			}
			if batch < 1 {
				return cli.Usagef(cmd, "--mbs: given %d, want a number from 1", batch)
			}
			var cases caseSet
			for _, p := range f.of(n) {
				rows := batch * p.rows
				for _, c := range []struct {
					layout            opbench.Layout
					rows, cols, inner int
				}{{opbench.Forward, rows, p.cols, p.inner}, {opbench.WGrad, p.cols, p.inner, rows}, {opbench.DGrad, rows, p.inner, p.cols}} {
					cases = append(cases, func(m *opbench.Maker) ([]opbench.Case, error) {
						measured, err := m.GEMM(c.rows, c.cols, c.inner, c.layout)
						measured.Shape = p.layer + " " + measured.Shape
						return []opbench.Case{measured}, err
					})
				}
			}
			return runImplBenchmark(cmd, prog, o, dtypes, cases)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&model, "model", "", "sizes of the model `NAME`")
	for i, s := range f.sizes {
		flags.IntVar(&given[i], s.flag, s.value, "`N` instead of that of the model")
	}
	flags.IntVar(&batch, "mbs", 1, "`N` sequences in a micro batch")
	o.addFlags(cmd)
	return cmd
}
