package projection_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everySetting returns the parameters of all settings of a model on some devices, found by trying
// all numbers.
func everySetting(devices, layers, experts, batch int) []map[string]any {
	schedules := []map[string]any{{}}
	for _, name := range []string{"zero-bubble", "zbv-formatted", "v-half", "v-min"} {
		schedules = append(schedules, map[string]any{"patch_primus_pipeline": true, "pp_algorithm": name})
	}
	recompute := []map[string]any{
		{}, {"recompute_granularity": "selective"},
		{"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
	}
	var list []map[string]any
	for tensor := 1; tensor <= devices; tensor++ {
		for pipe := 1; pipe <= devices/tensor; pipe++ {
			for context := 1; context <= devices/tensor/pipe; context++ {
				for expert := 1; expert <= max(experts, 1); expert++ {
					for micro := 1; micro <= batch; micro++ {
						for virtual := 1; virtual <= layers; virtual++ {
							for i, schedule := range schedules {
								switch {
								case pipe == 1 && (virtual > 1 || i > 0), i == 1 && virtual > 1, i > 1 && virtual != 2:
									continue
								}
								for _, again := range recompute {
									one := map[string]any{
										"tensor_model_parallel_size": tensor, "pipeline_model_parallel_size": pipe, "context_parallel_size": context,
										"micro_batch_size": micro, "sequence_parallel": tensor > 1, "num_virtual_stages_per_pipeline_rank": virtual,
									}
									if experts > 0 {
										one["expert_model_parallel_size"] = expert
									}
									for _, set := range []map[string]any{schedule, again} {
										for k, v := range set {
											one[k] = v
										}
									}
									list = append(list, one)
								}
							}
						}
					}
				}
			}
		}
	}
	return list
}

// projected are the figures of one setting.
type projected struct{ seconds, memory float64 }

// brute projects all settings one by one, the fastest first.
func brute(t *testing.T, s projection.Search, base map[string]any, layers, experts, batch int) []projected {
	t.Helper()
	var all []projected
	for _, one := range everySetting(s.Cluster.Nodes*s.Cluster.DevicesPerNode, layers, experts, batch) {
		plan, err := projection.Read("model", params(t, base, one), s.Cluster)
		if err != nil {
			even := map[string]any{"account_for_embedding_in_pipeline_split": true, "account_for_loss_in_pipeline_split": true}
			if plan, err = projection.Read("model", params(t, base, one, even), s.Cluster); err != nil {
				continue
			}
		}
		perf, err := plan.Performance(s.Rates)
		require.NoError(t, err)
		mem := plan.Memory(s.Reserve)
		all = append(all, projected{perf.StepSeconds, mem.Stages[mem.Largest].Total})
	}
	slices.SortFunc(all, func(a, b projected) int { return cmp.Compare(a.seconds, b.seconds) })
	return all
}

// TestSearchFindsTheBest compares the search with a projection of every setting, for models,
// clusters and batches by chance.
func TestSearchFindsTheBest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			pick := func(list ...int) int { return list[r.IntN(len(list))] }
			layers, experts, batch := pick(2, 3, 4, 6), 0, pick(2, 4, 6)
			base := map[string]any{"global_batch_size": batch, "overlap_grad_reduce": r.IntN(2) == 0, "use_distributed_optimizer": r.IntN(2) == 0}
			for k, v := range shape(layers, 128*pick(4, 16), 512*pick(4, 8), pick(4, 8, 12), 4, 32000) {
				base[k] = v
			}
			if r.IntN(3) == 0 {
				experts = pick(2, 4)
				for k, v := range moe(experts, 2, 1024) {
					base[k] = v
				}
			}
			switch r.IntN(4) {
			case 0:
				base["fp8"] = "hybrid"
			case 1:
				base["use_torch_fsdp2"] = true
			case 2:
				base["hidden_dropout"] = 0.1
			}
			s := projection.Search{
				Name: "model", Params: params(t, base), Cluster: projection.Cluster{Nodes: pick(1, 2), DevicesPerNode: pick(2, 3, 4)}, Margin: 0.1,
				Rates: projection.Rates{BF16: 1e14, FP8: 2e14, Efficiency: 0.5, HBM: 1e12, Inside: 1e9 * float64(pick(5, 50, 500)), Between: 1e9 * float64(pick(1, 10, 100))},
				Top:   pick(1, 3, 10),
			}
			all := brute(t, s, base, layers, experts, batch)
			if len(all) == 0 {
				s.Memory = 1e12
				_, err := s.Run(t.Context())
				require.ErrorContains(t, err, "projection: model cannot be cut over")
				return
			}
			smallest := slices.MinFunc(all, func(a, b projected) int { return cmp.Compare(a.memory, b.memory) }).memory
			for _, share := range []float64{1000, 1.5, 1.1, 1, 0.5} {
				s.Memory = smallest * share / (1 - s.Margin) * (1 + 1e-12)
				var want []projected
				for _, p := range all {
					if p.memory <= s.Memory*(1-s.Margin) {
						want = append(want, p)
					}
				}
				got, err := s.Run(t.Context())
				require.NoError(t, err)
				assert.Equal(t, len(all), got.Settings)
				require.Len(t, got.Best, min(s.Top, len(want)))
				for i, f := range got.Best {
					assert.InDelta(t, want[i].seconds, f.Performance.StepSeconds, 0, "place %d", i)
					assert.LessOrEqual(t, f.Memory, s.Memory*(1-s.Margin))
				}
				out := map[string]int{}
				for _, reason := range got.Out {
					out[reason.Reason] = reason.Count
				}
				assert.LessOrEqual(t, out["memory"], len(all)-len(want))
				assert.Equal(t, got.Settings, out["memory"]+out["slower"]+len(got.Best))
				if len(want) > 0 {
					assert.Nil(t, got.Smallest)
					continue
				}
				assert.Equal(t, len(all), out["memory"])
				require.NotNil(t, got.Smallest)
				assert.InDelta(t, smallest, got.Smallest.Memory, 0)
			}
		})
	}
}

// TestSearchProjectsFew counts the settings that a search over 16,384 devices projects.
func TestSearchProjectsFew(t *testing.T) {
	t.Parallel()
	r, err := largeSearch(t, deepSeekV3...).Run(t.Context())
	require.NoError(t, err)
	assert.Len(t, r.Best, 10)
	assert.Greater(t, r.Settings, 10_000)
	assert.Less(t, r.Projected, 100)
}

func TestSearchIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := projection.Search{Params: params(t, shape(8, 1024, 4096, 8, 8, 32000), map[string]any{"global_batch_size": 64}), Cluster: projection.Cluster{Nodes: 2, DevicesPerNode: 8}, Rates: rates, Memory: 80e9}
	_, err := s.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// TestSearchRefusesLongPipelines checks that stages for which there is no table are refused.
func TestSearchRefusesLongPipelines(t *testing.T) {
	t.Parallel()
	s := projection.Search{
		Name: "model", Cluster: projection.Cluster{Nodes: 256, DevicesPerNode: 8}, Rates: rates, Memory: 80e9,
		Schedules: []projection.Schedule{projection.ScheduleOneForwardOneBackward}, Recompute: []string{projection.RecomputeNone}, Keep: []string{"pipeline_model_parallel_size"},
		Params: params(t, shape(2048, 64, 256, 1, 1, 32000), map[string]any{"global_batch_size": 2, "pipeline_model_parallel_size": 2048}),
	}
	_, err := s.Run(t.Context())
	require.ErrorContains(t, err, "given 2048 stages, want a number from 1 to 1024")
}

// largeSearch is a search over 16,384 devices.
func largeSearch(tb testing.TB, sets ...map[string]any) projection.Search {
	tb.Helper()
	h100, err := projection.FindDevice("H100")
	require.NoError(tb, err)
	batch := map[string]any{"global_batch_size": 2048, "seq_length": 8192, "overlap_grad_reduce": true, "use_distributed_optimizer": true}
	return projection.Search{
		Name: "model", Params: params(tb, append(sets, batch)...), Cluster: projection.Cluster{Nodes: 2048, DevicesPerNode: 8},
		Rates:  projection.Rates{BF16: h100.BF16, Efficiency: 0.4, HBM: h100.HBM, Inside: h100.Link, Between: 50e9},
		Memory: h100.Memory, Margin: 0.05, Reserve: 4e9, Top: 10,
	}
}

var llama405B = []map[string]any{shape(126, 16384, 53248, 128, 8, 128256)}

// BenchmarkSearch searches 16,384 devices.
func BenchmarkSearch(b *testing.B) {
	for name, sets := range map[string][]map[string]any{"Llama 3.1 405B": llama405B, "DeepSeek V3": deepSeekV3, "Qwen 3 30B A3B": qwen30B} {
		b.Run(name, func(b *testing.B) {
			s := largeSearch(b, sets...)
			for b.Loop() {
				r, err := s.Run(b.Context())
				require.NoError(b, err)
				b.ReportMetric(float64(r.Settings), "settings")
				b.ReportMetric(float64(r.Projected), "projected")
			}
		})
	}
}
