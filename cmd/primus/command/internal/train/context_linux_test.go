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
	window, gather := []string{"window_size=[9, 0]", "window_attn_skip_freq=[0, 1, 1, 0]"}, []string{"cp_comm_type=all_gather"}
	runs := []struct {
		model  string
		ranks  int
		within float64
		args   []string
	}{
		{"llama_2M", 2, asOne, []string{"context_parallel_size=2"}},
		{"llama_2M", 2, asOne, slices.Concat(gather, []string{"context_parallel_size=2"})},
		{"llama_2M", 3, asOne, []string{"context_parallel_size=3", "seq_length=18", "num_query_groups=2", "global_batch_size=6"}},
		{"llama_2M", 4, asOne, slices.Concat(documents, window, []string{"context_parallel_size=4"})},
		{"llama_2M", 4, asOne, slices.Concat(documents, window, gather, []string{"context_parallel_size=4"})},
		{"llama_2M", 4, asOne, slices.Concat(documents, gather, []string{"context_parallel_size=2", "use_distributed_optimizer=true", "overlap_grad_reduce=true", "overlap_param_gather=true"})},
		{"gpt2_10M", 4, asOne, []string{"context_parallel_size=2", "tensor_model_parallel_size=2", "sequence_parallel=true", "hidden_dropout=0.1"}},
		{"gpt2_10M", 2, asOne, slices.Concat(documents, []string{"context_parallel_size=2", "hidden_dropout=0.1"})},
		{"qwen_6M", 4, asOne, []string{"context_parallel_size=4", "recompute_granularity=selective", "recompute_modules=['core_attn', 'layernorm']"}},
		{"llama_2M", 4, asOne, []string{"context_parallel_size=2", "pipeline_model_parallel_size=2", "pp_algorithm=zbv"}},
		{"llama_2M", 8, asOne, slices.Concat(window, []string{"context_parallel_size=2", "pipeline_model_parallel_size=2", "tensor_model_parallel_size=2", "use_distributed_optimizer=true"})},
		{"moe_8x3M", 4, asOne, []string{"num_experts=4", "moe_router_topk=2", "context_parallel_size=2", "expert_model_parallel_size=2", "use_distributed_optimizer=true"}},
		{"moe_8x3M", 4, asOne, []string{"num_experts=4", "moe_router_topk=2", "context_parallel_size=2", "tensor_model_parallel_size=2", "sequence_parallel=true", "expert_model_parallel_size=4"}},
		{"llama_2M", 2, asBF16, []string{"context_parallel_size=2", "bf16=true", "recompute_granularity=full", "recompute_num_layers=2"}},
		{"llama_2M", 2, asOne, []string{"context_parallel_size=2", "lora_rank=4", "optimizer=sgd"}},
	}
	rand.New(rand.NewPCG(7, 9)).Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
	launchers := []string{"openmpi", "mpich"}
	for i, r := range runs[:primustest.Cases(3, len(runs))] {
		args := slices.Concat([]string{
			"num_layers=4", "seq_length=32", "train_iters=4", "eval_interval=2", "eval_iters=3", "final_eval_windows=8", "global_batch_size=8", "micro_batch_size=2",
		}, r.args)
		name := strings.ReplaceAll(strings.Join(append([]string{r.model, fmt.Sprint(r.ranks)}, r.args...), " "), folder+"/", "")
		t.Run(name, func(t *testing.T) {
			one, many := commandtest.NewLab(t), commandtest.NewLab(t)
			for _, lab := range []*commandtest.Lab{one, many} {
				lab.Edit("llama_2M", r.model)
			}
			got := one.Train(slices.DeleteFunc(slices.Clone(args), func(a string) bool {
				return strings.Contains(a, "parallel") || strings.HasPrefix(a, "pp_") || strings.HasPrefix(a, "cp_")
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

// What ranks that share the tokens of sequences cannot do is named before anything is read.
func TestContextRefusals(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"context_parallel_size=4", "seq_length=36"}, "context_parallel_size: given 4, want 1, or a seq_length in place of 36 that is a multiple of 8"},
		{[]string{"context_parallel_size=-1"}, "context_parallel_size: given -1, want a number >= 1"},
		{[]string{"context_parallel_size=2"}, "context_parallel_size: given 2, want a divisor of the number of ranks, which is 1"},
		{[]string{"context_parallel_size=2", "tensor_model_parallel_size=2"}, "context_parallel_size times tensor_model_parallel_size: given 4, want a divisor of the number of ranks, which is 1"},
		{[]string{"context_parallel_size=2", "cp_comm_type=a2a"}, "cp_comm_type: given a2a, want p2p or all_gather, the same for all layers"},
		{[]string{"context_parallel_size=2", "cp_comm_type=['p2p', 'all_gather']"}, "cp_comm_type: given [p2p all_gather], want p2p or all_gather, the same for all layers"},
		{[]string{"context_parallel_size=2", "attention_dropout=0.1"}, "attention_dropout: given 0.1, want 0 with context_parallel_size 2"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			l := commandtest.NewLab(t)
			got := l.Train(tt.args...)
			assert.NotZero(t, got.Code)
			assert.Contains(t, got.Stderr, tt.want)
			assert.NoFileExists(t, l.Path("metrics.jsonl"))
		})
	}
}
