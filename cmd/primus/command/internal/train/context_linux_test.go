package train_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ranks that share the tokens of sequences train the model that one rank trains, together with the
// other ways in which ranks divide the work.
func TestContextTrainsAsOne(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, "{\"text\": %q}\n", strings.Repeat(fmt.Sprintf("word %d ", i), 1+i*i%20))
	}
	folder := t.TempDir()
	text, tokenizer := filepath.Join(folder, "text.jsonl"), filepath.Join(folder, "tokenizer.json")
	commandtest.NewLab(t).Write(text, lines.String())
	got := commandtest.Run(t, "tokenizer", "train", "--input", text, "--vocab-size", "300", "-o", tokenizer)
	require.Zero(t, got.Code, got.Stderr)
	documents := []string{"train_data_path=" + text, "tokenizer_model=" + tokenizer, "vocab_size=0", "eod_mask_loss=true", "reset_attention_mask=true", "reset_position_ids=true"}
	window := []string{"window_size=[9, 0]", "window_attn_skip_freq=[0, 1, 1, 0]"}
	runs := []struct {
		model  string
		ranks  int
		within float64
		args   []string
	}{
		{"llama_2M", 2, asOne, []string{"context_parallel_size=2"}},
		{"llama_2M", 4, asOne, slices.Concat(documents, window, []string{"context_parallel_size=4"})},
		{"llama_2M", 4, asOne, slices.Concat(documents, []string{"context_parallel_size=2", "use_distributed_optimizer=true", "overlap_grad_reduce=true", "overlap_param_gather=true"})},
		{"gpt2_10M", 4, asOne, []string{"context_parallel_size=2", "tensor_model_parallel_size=2", "sequence_parallel=true", "hidden_dropout=0.1"}},
		{"gpt2_10M", 2, asOne, slices.Concat(documents, []string{"context_parallel_size=2", "hidden_dropout=0.1"})},
		{"qwen_6M", 4, asOne, []string{"context_parallel_size=4", "recompute_granularity=selective", "recompute_modules=['core_attn', 'layernorm']"}},
		{"llama_2M", 4, asOne, []string{"context_parallel_size=2", "pipeline_model_parallel_size=2", "pp_algorithm=zbv"}},
		{"llama_2M", 8, asOne, slices.Concat(window, []string{"context_parallel_size=2", "pipeline_model_parallel_size=2", "tensor_model_parallel_size=2", "use_distributed_optimizer=true"})},
		{"moe_8x3M", 4, asOne, []string{"num_experts=4", "moe_router_topk=2", "context_parallel_size=2", "expert_model_parallel_size=2", "use_distributed_optimizer=true"}},
		{"moe_8x3M", 4, asOne, []string{"num_experts=4", "moe_router_topk=2", "context_parallel_size=2", "tensor_model_parallel_size=2", "sequence_parallel=true", "expert_model_parallel_size=4"}},
		{"llama_2M", 2, asBF16, []string{"context_parallel_size=2", "bf16=true", "recompute_granularity=full", "recompute_num_layers=2"}},
		{"llama_2M", 2, asOne, []string{"context_parallel_size=2", "optimizer=muon", "lora_rank=4", "optimizer=sgd"}},
	}
	rand.New(rand.NewPCG(7, 9)).Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
	launchers := []string{"openmpi", "mpich"}
	for i, r := range runs[:primustest.Cases(3, len(runs))] {
		args := slices.Concat([]string{
			"num_layers=4", "seq_length=32", "train_iters=4", "eval_interval=2", "eval_iters=3", "final_eval_windows=8", "global_batch_size=8", "micro_batch_size=2",
		}, r.args)
		t.Run(strings.Join(append([]string{r.model, fmt.Sprint(r.ranks)}, r.args...), " "), func(t *testing.T) {
			one, many := commandtest.NewLab(t), commandtest.NewLab(t)
			for _, lab := range []*commandtest.Lab{one, many} {
				lab.Edit("llama_2M", r.model)
			}
			got := one.Train(slices.DeleteFunc(slices.Clone(args), func(a string) bool {
				return strings.Contains(a, "parallel") || strings.HasPrefix(a, "pp_")
			})...)
			require.Zero(t, got.Code, got.Stderr)
			trainRanks(t, many, launchers[i%2], r.ranks, args...)
			checkWithin(t, r.within, one.Records(), many.Records())
		})
	}
}

// A rank that dies ends those that wait for its keys and values.
func TestLostContext(t *testing.T) {
	needMPICH(t)
	j := start(t, commandtest.NewLab(t), nil, "--nproc", "2", "train_iters=1000000", "log_interval=1000000", "exp_name=exp", "context_parallel_size=2", "global_batch_size=4", "micro_batch_size=1")
	j.WaitFor("step 1/")
	require.NoError(t, syscall.Kill(j.process(t, "RANK", 1), syscall.SIGKILL))
	require.Error(t, j.Wait())
	assert.Contains(t, j.Log.String(), " of 2 has failed: ")
}
