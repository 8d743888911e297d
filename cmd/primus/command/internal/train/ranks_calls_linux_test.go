package train_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The calls that ranks make are those that were known before, whatever each rank has of the model.
func TestRanksKnowTheirCalls(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	needMPICH(t)
	for _, tt := range []struct {
		name, model string
		ranks       string
		args        []string
		vary        []string // ops whose sizes depend on the data
	}{
		{"stages", "llama_2M", "2", []string{"pp_algorithm=zb1p", "use_distributed_optimizer=true"}, nil},
		{"chunks", "gpt2_10M", "2", []string{"num_virtual_stages_per_pipeline_rank=2", "num_layers=4", "hidden_dropout=0.1"}, nil},
		{"experts", "moe_8x3M", "4", []string{"expert_model_parallel_size=2", "recompute_granularity=full", "recompute_method=uniform", "recompute_num_layers=1"}, []string{"te_general_grouped_gemm", "swiglu", "dswiglu"}},
		{"layers", "llama_2M", "4", []string{"tensor_model_parallel_size=2", "sequence_parallel=true", "grad_reduce_in_bf16=true"}, []string{"embedding_fwd", "embedding_bwd"}},
		{"tokens", "llama_2M", "4", []string{"context_parallel_size=2", "cp_comm_type=p2p", "bf16=true"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := commandtest.NewLab(t)
			l.Edit("llama_2M", tt.model)
			dir := filepath.Join(l.Dir, "calls")
			args := append([]string{"num_layers=2", "pipeline_model_parallel_size=2", "global_batch_size=8", "train_iters=2", "eval_interval=2", "eval_iters=1", "final_eval_windows=4"}, tt.args...)
			record := []string{"--nproc", tt.ranks, "--record-ops", "*", "--record-calls", "every:1", "--record-dir", dir}
			j := start(t, l, nil, append(record, args...)...)
			require.NoError(t, j.Wait(), j.Log.String())

			prog := cli.Program{Streams: cli.Streams{Out: t.Output(), Err: t.Output()}}
			o := experiments.TrainingOptions{Options: experiments.Options{Config: l.Exp}}
			require.NoError(t, o.WithSteps(t.Context(), prog, "test", args, func(p experiments.StepParams) error {
				expected, _, err := native.ExpectedCalls(p.Module, p.Manager, p.Device, p.Log)
				require.NoError(t, err)
				class := func(op, call string) string {
					if slices.Contains(tt.vary, op) {
						return op
					}
					return call
				}
				known := map[string]bool{}
				for _, c := range expected {
					known[class(c.Op.Name(), c.String())] = true
				}
				files, err := recording.Files(dir)
				require.NoError(t, err)
				require.NotEmpty(t, files)
				unknown := map[string]bool{}
				for _, file := range files {
					c, err := recording.Open(t.Context(), file, p.Registry.Snapshot())
					require.NoError(t, err)
					if c.Op.Collective() { // what ranks tell each other about a run is of any length
						continue
					}
					args, err := c.Arguments()
					require.NoError(t, err)
					if called := class(c.Op.Name(), c.Op.Name()+" "+args.Describe()); !known[called] {
						unknown[called] = true
					}
				}
				assert.Empty(t, slices.Sorted(maps.Keys(unknown)), "calls that were not known before")
				return nil
			}))
		})
	}
}
