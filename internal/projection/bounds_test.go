package projection

import (
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBoundsHold compares bounds with exact figures, for plans by chance.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	tables, tight := newTables(), 0
	for range 40 {
		pipe := pick(1, 2, 3, 4, 7)
		schedule := ScheduleNames()[r.IntN(6)]
		virtual := 1
		switch {
		case schedule == ScheduleInterleaved:
			virtual = pick(2, 3)
		case schedule.vee():
			virtual = 2
		}
		all := map[string]any{
			"num_layers": pipe * virtual * pick(1, 2), "hidden_size": 1024 * pick(1, 4), "num_attention_heads": 16, "seq_length": 2048 * pick(1, 4), "vocab_size": 32000 * pick(1, 4), "bf16": true,
			"untie_embeddings_and_output_weights": r.IntN(2) == 0, "hidden_dropout": 0.1 * float64(r.IntN(2)), "tensor_model_parallel_size": pick(1, 2, 4), "sequence_parallel": true,
			"pipeline_model_parallel_size": pipe, "num_virtual_stages_per_pipeline_rank": virtual, "global_batch_size": 8 * pick(1, 3, 8, 17, 90), "use_distributed_optimizer": r.IntN(2) == 0,
			"overlap_grad_reduce": r.IntN(2) == 0, "mtp_num_layers": r.IntN(2),
		}
		if algorithm := algorithms[schedule]; algorithm != "" {
			all["patch_primus_pipeline"], all["pp_algorithm"] = true, algorithm
		}
		if r.IntN(3) == 0 {
			all["num_experts"], all["moe_router_topk"], all["moe_layer_freq"], all["expert_model_parallel_size"] = 8, 2, pick(1, 2), pick(1, 2)
		}
		with := func(more map[string]any) *Plan {
			over, err := document.FromGo(more)
			require.NoError(t, err)
			base, err := document.FromGo(all)
			require.NoError(t, err)
			params, _ := base.Map()
			set, _ := over.Map()
			p, err := Read("model", document.Merge(params, set), Cluster{Nodes: pipe, DevicesPerNode: 8})
			require.NoError(t, err)
			return p
		}
		rates := Rates{BF16: 1e14, Efficiency: 0.5, HBM: 1e12, Inside: 1e9 * float64(pick(10, 500)), Between: 1e9 * float64(pick(1, 50))}
		none := with(nil)
		for _, recompute := range []map[string]any{
			nil, {"recompute_granularity": "selective"},
			{"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
			{"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 1},
		} {
			p := with(recompute)
			exact, err := p.exactTime(rates)
			require.NoError(t, err)
			merged := schedule.merged()
			own := p.leastTime(rates, merged, tables.held(p.Parallel))
			for _, least := range []float64{own, p.leastTime(rates, false, 0), none.leastTime(rates, merged, 0)} {
				require.LessOrEqual(t, least, exact, "%v %v", all, recompute)
			}
			if own > 0.99*exact {
				tight++
			}
			memory := p.exactMemory(4e9)
			mem := p.Memory(4e9)
			require.InDelta(t, mem.Stages[mem.Largest].Total, memory, 0)
			require.LessOrEqual(t, p.leastMemory(4e9, true), memory)
			require.LessOrEqual(t, none.leastMemory(4e9, false), memory)
		}
	}
	assert.Greater(t, tight, 40, "of 160 bounds")
}
