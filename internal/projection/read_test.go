package projection_test

import (
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// TestStages checks which layers a pipeline rank has.
func TestStages(t *testing.T) {
	t.Parallel()
	type chunk = projection.Chunk
	small := shape(8, 512, 1024, 8, 8, 32000)
	for name, c := range map[string]struct {
		set  map[string]any
		want [][]chunk
	}{
		"one":     {nil, [][]chunk{{{Layers: []int{0, 1, 2, 3, 4, 5, 6, 7}, Embedding: true, Loss: true}}}},
		"two":     {map[string]any{"pipeline_model_parallel_size": 2}, [][]chunk{{{Layers: []int{0, 1, 2, 3}, Embedding: true}}, {{Layers: []int{4, 5, 6, 7}, Loss: true}}}},
		"virtual": {map[string]any{"pipeline_model_parallel_size": 2, "num_layers_per_virtual_pipeline_stage": 2}, [][]chunk{{{Layers: []int{0, 1}, Embedding: true}, {Layers: []int{4, 5}}}, {{Layers: []int{2, 3}}, {Layers: []int{6, 7}, Loss: true}}}},
		"first and last": {
			map[string]any{"pipeline_model_parallel_size": 4, "decoder_first_pipeline_num_layers": 1, "decoder_last_pipeline_num_layers": 3},
			[][]chunk{{{Layers: []int{0}, Embedding: true}}, {{Layers: []int{1, 2}}}, {{Layers: []int{3, 4}}}, {{Layers: []int{5, 6, 7}, Loss: true}}},
		},
		"embedding and loss count": {
			map[string]any{"num_layers": 6, "pipeline_model_parallel_size": 4, "account_for_embedding_in_pipeline_split": true, "account_for_loss_in_pipeline_split": true},
			[][]chunk{{{Layers: []int{0}, Embedding: true}}, {{Layers: []int{1, 2}}}, {{Layers: []int{3, 4}}}, {{Layers: []int{5}, Loss: true}}},
		},
		"by hand": {
			map[string]any{"pipeline_model_parallel_size": 2, "decoder_pipeline_manual_split_list": []any{5, 3}, "mtp_num_layers": 2},
			[][]chunk{{{Layers: []int{0, 1, 2, 3, 4}, Embedding: true}}, {{Layers: []int{5, 6, 7}, MTP: 2, Loss: true}}},
		},
		"layout": {
			map[string]any{"pipeline_model_parallel_layout": "Et*2|(tt|)*2,t|tm,L", "pipeline_model_parallel_size": 5, "mtp_num_layers": 1},
			[][]chunk{{{Layers: []int{0, 1}, Embedding: true}}, {{Layers: []int{2, 3}}}, {{Layers: []int{4, 5}}}, {{Layers: []int{6}}}, {{Layers: []int{7}, MTP: 1, Loss: true}}},
		},
		"layout, two chunks": {
			map[string]any{"pipeline_model_parallel_layout": "Et|t*3|t*3|tL", "pipeline_model_parallel_size": 2},
			[][]chunk{{{Layers: []int{0}, Embedding: true}, {Layers: []int{4, 5, 6}}}, {{Layers: []int{1, 2, 3}}, {Layers: []int{7}, Loss: true}}},
		},
		"layout as lists": {
			map[string]any{"pipeline_model_parallel_layout": []any{[]any{"embedding", "decoder"}, []any{"decoder", "loss"}}, "pipeline_model_parallel_size": 2, "num_layers": 2},
			[][]chunk{{{Layers: []int{0}, Embedding: true}}, {{Layers: []int{1}, Loss: true}}},
		},
	} {
		plan, err := projection.Read("m", params(t, small, c.set), projection.Cluster{DevicesPerNode: 8})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, plan.Stages, name)
	}
}

// TestInFlight checks how many micro batches the chunks of each rank hold.
func TestInFlight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  map[string]any
		want [][]int
	}{
		"1f1b":        {map[string]any{"global_batch_size": 16}, [][]int{{4}, {3}, {2}, {1}}},
		"few":         {map[string]any{"global_batch_size": 4}, [][]int{{2}, {2}, {2}, {1}}},
		"zero bubble": {map[string]any{"global_batch_size": 16, "patch_zero_bubble": true}, [][]int{{4}, {4}, {4}, {4}}},
		"long":        {map[string]any{"global_batch_size": 2002}, [][]int{{4}, {3}, {2}, {1}}},
		"interleaved": {map[string]any{"global_batch_size": 16, "virtual_pipeline_model_parallel_size": 2}, [][]int{{7, 4}, {5, 4}, {4, 3}, {4, 1}}},
	} {
		plan := read(t, append(llama8B, map[string]any{"pipeline_model_parallel_size": 4}, c.set)...)
		var got [][]int
		for _, s := range plan.Memory(0).Stages {
			got = append(got, s.InFlight)
		}
		assert.Equal(t, c.want, got, name)
	}
}

// TestVee checks which rank has which layers in the shape of a V, and what it holds.
func TestVee(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]map[string]any{
		"zbv":    {"patch_primus_pipeline": true, "pp_algorithm": "zbv-formatted"},
		"v-half": {"patch_primus_pipeline": true, "pp_algorithm": "v-half", "virtual_pipeline_model_parallel_size": 2},
		"v-min":  {"patch_zero_bubble": true, "zero_bubble_v_schedule": true, "zero_bubble_v_schedule_mem_setup": "min"},
	} {
		plan := read(t, append(llama8B, map[string]any{"pipeline_model_parallel_size": 4, "global_batch_size": 32}, set)...)
		assert.Equal(t, projection.Schedule(name), plan.Parallel.Schedule)
		first, last := plan.Stages[0], plan.Stages[3]
		assert.True(t, first[0].Embedding && first[1].Loss, name)
		assert.Equal(t, []int{28, 29, 30, 31}, first[1].Layers, name)
		assert.Equal(t, []int{12, 13, 14, 15}, last[0].Layers, name)
		assert.Equal(t, []int{16, 17, 18, 19}, last[1].Layers, name)
		chunks := 0
		for _, s := range plan.Memory(0).Stages {
			chunks = max(chunks, s.InFlight[0]+s.InFlight[1])
		}
		assert.Equal(t, map[string]int{"zbv": 8, "v-half": 6, "v-min": 4}[name], chunks, name)
		perf, err := plan.Performance(rates)
		require.NoError(t, err)
		assert.Positive(t, perf.Bubble, name)
	}
}

// TestExperts checks which layers have experts.
func TestExperts(t *testing.T) {
	t.Parallel()
	base := []map[string]any{shape(6, 512, 1024, 8, 8, 32000), moe(8, 2, 256)}
	for give, want := range map[any]int{1: 6, 2: 3, "3": 2, "([0]*1+[1]*5)": 5, "[1,0]*3": 3, "[0, 0, 1, 1, 1, 1]": 4, "2*[1,1,0]": 4} {
		for _, g := range read(t, append(base, map[string]any{"moe_layer_freq": give})...).Model.Parameters() {
			if g.Name == projection.SparseLayer {
				assert.Equal(t, want, g.Times, "%v", give)
			}
		}
	}
}

// TestRefusals checks what Megatron would refuse, or no formula describes.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]map[string]any{
		"num_layers is missing: want a number; give num_layers=VALUE":                                                             {"num_layers": nil},
		`hidden_size: given string "big", want a whole number`:                                                                    {"hidden_size": "big"},
		"hidden_size: given int 0, want a whole number":                                                                           {"hidden_size": 0},
		"bf16: given string \"si\", want true or false":                                                                           {"bf16": "si"},
		"num_attention_heads 32 cannot be cut into 3 tensor-parallel parts":                                                       {"tensor_model_parallel_size": 3},
		"num_layers 32 cannot be cut evenly over 5 pipeline stages":                                                               {"pipeline_model_parallel_size": 5},
		"global_batch_size: given int 12, want a multiple of micro_batch_size 1 × 8 data-parallel ranks":                          {"global_batch_size": 12},
		`the size of the vocabulary of tokenizer_model "acme/words" is not known: give vocab_size=N`:                              {"vocab_size": nil, "tokenizer_model": "acme/words"},
		`model_type: given string "mamba", want gpt`:                                                                              {"model_type": "mamba"},
		"spec: given a list of 1, and the formulas do not describe such a model":                                                  {"spec": []any{"x"}},
		`compress_ratios: given string "[0]", and the formulas do not describe such a model`:                                      {"compress_ratios": "[0]"},
		"recompute_granularity is full: want recompute_method":                                                                    {"recompute_granularity": "full"},
		`recompute_method: given string "some", want one of [uniform block]`:                                                      {"recompute_method": "some"},
		`recompute_layer_ids: given string "1,x", want numbers of layers with commas`:                                             {"recompute_layer_ids": "1,x"},
		`moe_layer_freq: given string "[0]*2+", want a number, a list of 0 and 1`:                                                 {"num_experts": 8, "moe_layer_freq": "[0]*2+"},
		"moe_layer_freq: given string \"[0]*2\", want a flag for each of the 32 layers, not 2":                                    {"num_experts": 8, "moe_layer_freq": "[0]*2"},
		"moe_router_topk: given int 9, want at most num_experts 8":                                                                {"num_experts": 8, "moe_router_topk": 9},
		"num_experts 9 cannot be cut into 2 expert-parallel parts":                                                                {"num_experts": 9, "expert_model_parallel_size": 2},
		`pipeline_model_parallel_layout: given string "Et*31|L", want a multiple of pipeline_model_parallel_size 4 stages, not 2`: {"pipeline_model_parallel_layout": "Et*31|L", "pipeline_model_parallel_size": 4},
		`want 32 layers and 0 of multi-token prediction, not 31 and 0`:                                                            {"pipeline_model_parallel_layout": "Et*31L"},
		`want letters E, t, m and L with | between stages: a parenthesis is not closed`:                                           {"pipeline_model_parallel_layout": "E(t*32L"},
		`pipeline_model_parallel_layout: given string "Ex", want the letters E, t, m and L, not "x"`:                              {"pipeline_model_parallel_layout": "Ex"},
		`pp_algorithm: given string "v-max", want 1f1b, 1f1b-interleaved, zero-bubble, zero-bubble-heuristic, zbv-formatted`:      {"patch_primus_pipeline": true, "pp_algorithm": "v-max"},
		`given 4 virtual stages for v-min, want 2: one each way`:                                                                  {"patch_primus_pipeline": true, "pp_algorithm": "v-min", "pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 4},
		`exp_avg_dtype: given string "int3", want fp32, bf16, fp16 or fp8`:                                                        {"use_precision_aware_optimizer": true, "exp_avg_dtype": "int3"},
		"8 devices cannot be cut into tensor 16 × pipeline 1 × context 1 parallel ranks: want a multiple of 16":                   {"tensor_model_parallel_size": 16, "nodes": 1},
	} {
		cluster := projection.Cluster{DevicesPerNode: 8}
		if set["nodes"] != nil {
			cluster.Nodes = 1
		}
		_, err := projection.Read("m", params(t, append(llama8B, set)...), cluster)
		assert.ErrorContains(t, err, want)
	}
}

// TestErrorsSayWhere checks that an error names the place of the value.
func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	overrides, _, err := document.ParseOverrides([]string{"hidden_size=big"})
	require.NoError(t, err)
	_, err = projection.Read("m", document.Merge(params(t, llama8B...), overrides), projection.Cluster{DevicesPerNode: 8})
	assert.ErrorContains(t, err, `projection: hidden_size: given string "big", want a whole number from 1 to 1099511627776 (override 1 "hidden_size=big")`)
}

func TestVocabulary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  map[string]any
		want int
	}{
		"of the tokenizer": {map[string]any{"vocab_size": nil, "tokenizer_model": "Qwen/Qwen2.5-3B"}, 151936},
		"padded":           {map[string]any{"vocab_size": 50257}, 50304},
		"padded for parts": {map[string]any{"vocab_size": 32000, "tensor_model_parallel_size": 8}, 32768},
		"given padded":     {map[string]any{"padded_vocab_size": 77}, 77},
	} {
		assert.Equal(t, c.want, read(t, append(llama8B, c.set)...).Model.Vocabulary, name)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("([0]*3+[1]*58)", "Et*3|(tt|)*29,m|L", 4)
	f.Add("[[", "((((", 1)
	f.Fuzz(func(t *testing.T, freq, layout string, pipeline int) {
		defer primustest.Measured(t, len(freq)+len(layout))()
		for _, set := range []map[string]any{{"moe_layer_freq": freq, "num_experts": 8}, {"pipeline_model_parallel_layout": layout}} {
			set["pipeline_model_parallel_size"] = pipeline
			v, err := document.FromGo(set)
			if err != nil {
				return
			}
			m, _ := v.Map()
			plan, err := projection.Read("m", document.Merge(params(t, llama8B...), m), projection.Cluster{DevicesPerNode: 8})
			if err == nil {
				plan.Memory(0)
			}
		}
	})
}

func TestDevices(t *testing.T) {
	t.Parallel()
	d, err := projection.FindDevice("mi300x")
	require.NoError(t, err)
	assert.InDelta(t, 192<<30, d.Memory, 0)
	_, err = projection.FindDevice("MI300")
	assert.ErrorContains(t, err, `device "MI300" is not known; did you mean "MI300X"?: want one of A100`)
}
