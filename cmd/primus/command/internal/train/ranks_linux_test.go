package train_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mpiLaunchers start jobs; rank is the variable with the number of a process.
var mpiLaunchers = map[string]struct {
	command []string
	rank    string
}{
	"openmpi": {[]string{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"}, "OMPI_COMM_WORLD_RANK"},
	"mpich":   {[]string{"mpiexec.hydra"}, "PMI_RANK"},
}

// job is a job of ranks that train an experiment.
type job struct{ *primustest.Program }

// newJob prepares a job with a group of ranks for each list of arguments. A group is a number of
// ranks, in front of its arguments.
func newJob(t *testing.T, l *commandtest.Lab, launcher string, groups ...[]string) *job {
	t.Helper()
	m := mpiLaunchers[launcher]
	path, err := exec.LookPath(m.command[0])
	if err != nil {
		t.Skipf("no launcher of %s: %v", launcher, err)
	}
	args := slices.Clone(m.command[1:])
	for i, group := range groups {
		if i > 0 {
			args = append(args, ":")
		}
		args = append(append(args, "-np", group[0], os.Args[0]), l.Args(group[1:]...)...)
	}
	child := commandtest.Child(t.Context(), nil)
	j := &job{l.Program(exec.CommandContext(t.Context(), path, args...))}
	j.Env = child.Env
	j.Cancel = func() error { return j.Process.Signal(syscall.SIGTERM) }
	j.WaitDelay = 10 * time.Second
	return j
}

// trainRanks trains with some ranks, and returns the text that they generate at the end, "" for
// stages of a pipeline.
func trainRanks(t *testing.T, l *commandtest.Lab, launcher string, ranks int, args ...string) string {
	t.Helper()
	j := newJob(t, l, launcher, append([]string{strconv.Itoa(ranks)}, args...))
	var out bytes.Buffer
	j.Stdout = &out
	require.NoError(t, j.Run(), j.Log.String())
	assert.Equal(t, 1, strings.Count(out.String(), " finished\n"), "one summary: %s", out.String())
	assert.Regexp(t, fmt.Sprintf(`\nranks       %d: \d+ %% of the time of steps went to waiting for others; \d+ %% of the exchange of gradients was hidden; rank \d computed longest, `, ranks), out.String())
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "pipeline_model_parallel_size=") }) {
		assert.NotContains(t, out.String(), "generated text after ")
		return ""
	}
	return generated(t, out.String())
}

// generated returns the text that a run has printed at the end.
func generated(t *testing.T, out string) string {
	t.Helper()
	parts := strings.Split(out, "\ngenerated text after ")
	require.Len(t, parts, 2, "one text: %s", out)
	return parts[1]
}

// checkLosses compares losses with those of one rank.
func checkLosses(t *testing.T, want, got []commandtest.Record) {
	t.Helper()
	checkWithin(t, 1e-5, want, got)
}

// checkWithin compares losses with those of one rank, within a part of each.
func checkWithin(t *testing.T, part float64, want, got []commandtest.Record) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		assert.Equal(t, w.Step, got[i].Step)
		assert.InEpsilon(t, w.Loss, got[i].Loss, part, "step %d", w.Step)
		if w.GradNorm == 0 { // the step is skipped
			assert.Zero(t, got[i].GradNorm, "step %d", w.Step)
		} else {
			assert.InEpsilon(t, w.GradNorm, got[i].GradNorm, 10*part, "step %d", w.Step)
		}
		if w.ValidLoss != nil {
			require.NotNil(t, got[i].ValidLoss)
			assert.InEpsilon(t, *w.ValidLoss, *got[i].ValidLoss, part, "step %d", w.Step)
		}
	}
}

// The parts of a loss by which many ranks may differ from one: in f32, with sums of several ranks
// that are rounded to 16 bits, and with other scales of fp8.
const (
	asOne  = 1e-5
	asBF16 = 2e-3
	asFP8  = 1e-2
)

// Any number of ranks trains the model that one rank trains.
func TestRanksTrainAsOne(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for _, tt := range []struct {
		name, model, launcher string
		ranks                 int
		within                float64
		args                  []string
	}{
		{"llama", "llama_2M", "openmpi", 2, asOne, []string{"global_batch_size=8", "train_iters=50"}},
		{"llama on 4 ranks", "llama_2M", "openmpi", 4, asOne, []string{"global_batch_size=8", "overlap_grad_reduce=true"}},
		{"gpt2 with dropout", "gpt2_10M", "mpich", 2, asOne, []string{"hidden_dropout=0.1", "attention_dropout=0.1"}},
		{"llama with shards", "llama_2M", "openmpi", 4, asOne, []string{"global_batch_size=8", "use_distributed_optimizer=true", "overlap_grad_reduce=true", "overlap_param_gather=true", "ema_decay=0.8"}},
		{"gpt2 with shards", "gpt2_10M", "mpich", 2, asOne, []string{"use_distributed_optimizer=true", "clip_grad=0.1"}},
		{"experts", "moe_8x3M", "mpich", 2, asOne, []string{"global_batch_size=8", "num_experts=4", "moe_router_topk=2"}},
		{"bf16 with shards", "llama_2M", "mpich", 2, asOne, []string{"bf16=true", "use_distributed_optimizer=true"}},
		{"layers apart", "llama_2M", "openmpi", 2, asOne, []string{"global_batch_size=8", "tensor_model_parallel_size=2"}},
		{"layers apart on 4 ranks", "llama_2M", "mpich", 4, asOne, []string{
			"global_batch_size=8", "tensor_model_parallel_size=2", "overlap_grad_reduce=true", "use_distributed_optimizer=true", "overlap_param_gather=true", "eval_iters=5",
		}},
		{"layers apart with biases", "gpt2_10M", "openmpi", 2, asOne, []string{"tensor_model_parallel_size=2", "hidden_dropout=0.1"}},
		{"sequences apart", "llama_2M", "openmpi", 2, asOne, []string{"global_batch_size=8", "tensor_model_parallel_size=2", "sequence_parallel=true"}},
		{"sequences apart with biases", "gpt2_10M", "mpich", 2, asOne, []string{"tensor_model_parallel_size=2", "sequence_parallel=true", "hidden_dropout=0.1", "attention_dropout=0.1"}},
		{"sequences apart with norms of heads", "qwen_6M", "openmpi", 4, asOne, []string{
			"global_batch_size=8", "tensor_model_parallel_size=2", "sequence_parallel=true", "vocab_size=301",
			"use_distributed_optimizer=true", "overlap_grad_reduce=true", "recompute_granularity=selective", "recompute_modules=['layernorm', 'mlp']", "seq_length=64",
		}},
		{"sequences apart with experts", "moe_8x3M", "mpich", 2, asOne, []string{
			"global_batch_size=8", "num_experts=4", "moe_router_topk=2", "tensor_model_parallel_size=2", "sequence_parallel=true", "recompute_granularity=selective", "recompute_modules=['layernorm', 'moe']",
		}},
		{"sequences and experts apart", "moe_8x3M", "openmpi", 4, asOne, []string{
			"global_batch_size=8", "num_experts=4", "moe_router_topk=2", "train_iters=20", "tensor_model_parallel_size=2", "sequence_parallel=true", "expert_model_parallel_size=2",
			"use_distributed_optimizer=true", "overlap_grad_reduce=true", "eval_iters=5",
		}},
		{"experts apart", "moe_8x3M", "openmpi", 2, asOne, []string{"global_batch_size=8", "num_experts=4", "moe_router_topk=2", "expert_model_parallel_size=2"}},
		{"experts apart on 4 ranks", "moe_8x3M", "mpich", 4, asOne, []string{
			"global_batch_size=8", "num_experts=4", "moe_router_topk=2", "expert_model_parallel_size=2", "overlap_grad_reduce=true", "use_distributed_optimizer=true", "eval_iters=5",
		}},
		{"gradients in bf16", "llama_2M", "openmpi", 2, asBF16, []string{"bf16=true", "grad_reduce_in_bf16=true", "overlap_grad_reduce=true"}},
		{"gradients in bf16 with shards", "llama_2M", "mpich", 2, asBF16, []string{"grad_reduce_in_bf16=true", "use_distributed_optimizer=true"}},
		{"fp16 with shards", "llama_2M", "openmpi", 2, asOne, []string{"fp16=true", "initial_loss_scale=1024", "use_distributed_optimizer=true"}},
		{"fp16 that overflows", "llama_2M", "mpich", 2, asOne, []string{"train_iters=5", "fp16=true", "initial_loss_scale=67108864", "tensor_model_parallel_size=2"}},
		{"layers apart in bf16", "llama_2M", "mpich", 2, asBF16, []string{"bf16=true", "tensor_model_parallel_size=2", "sequence_parallel=true"}},
		{"layers apart in fp16", "gpt2_10M", "openmpi", 2, asBF16, []string{"fp16=true", "initial_loss_scale=1024", "tensor_model_parallel_size=2"}},
		{"layers apart in fp8", "llama_2M", "openmpi", 2, asFP8, []string{"bf16=true", "fp8=hybrid", "tensor_model_parallel_size=2"}},
		{"matrices of Muon apart", "llama_2M", "mpich", 2, asOne, []string{"optimizer=muon", "tensor_model_parallel_size=2", "overlap_grad_reduce=true"}},
		{"adapters with shards", "llama_2M", "mpich", 2, asOne, []string{"lora_rank=4", "use_distributed_optimizer=true"}},
		{"adapters apart", "gpt2_10M", "openmpi", 2, asOne, []string{"lora_rank=4", "lora_alpha=32", "lr=1e-2", "tensor_model_parallel_size=2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"train_iters=12", "eval_interval=6", "eval_iters=3", "final_eval_windows=8"}, tt.args...)
			one, many := commandtest.NewLab(t), commandtest.NewLab(t)
			for _, l := range []*commandtest.Lab{one, many} {
				l.Edit("llama_2M", tt.model)
			}
			got := one.Train(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.Contains(a, "_parallel") })...)
			require.Zero(t, got.Code, got.Stderr)
			trainRanks(t, many, tt.launcher, tt.ranks, args...)
			checkWithin(t, tt.within, one.Records(), many.Records())
		})
	}
}

// Ranks know their calls before the first step, those of the text at the end among them, and refuse
// a policy that does not serve one.
func TestRanksRefuseAPolicyAtTheStart(t *testing.T) {
	needMPICH(t)
	env := []string{"PRIMUS_ONEDNN=", "TE_FL_PER_OP=generic_gemm=vendor:onednn"} // which declines small products
	if reason := commandtest.Unavailable(t, "vendor.onednn", env); reason != "" {
		t.Skip(reason)
	}
	for _, parallel := range []string{"tensor_model_parallel_size=2", "context_parallel_size=2", "pipeline_model_parallel_size=2", "expert_model_parallel_size=2"} {
		l := commandtest.NewLab(t)
		l.Edit("num_layers: 1", "num_layers: 2")
		if strings.HasPrefix(parallel, "expert") {
			l.Edit("llama_2M", "moe_8x3M")
		}
		j := start(t, l, env, "--nproc", "2", parallel, "train_iters=2")
		j.fails(t)
		assert.Contains(t, j.Log.String(), `policy: it leaves calls without an impl: op "generic_gemm" is called`)
		assert.NotContains(t, j.Log.String(), "step 1/")
	}
}

// The tokens that count differ between the parts of a global batch that ranks have.
func TestRanksCountTheSameTokens(t *testing.T) {
	var lines strings.Builder
	for i := range 600 {
		fmt.Fprintf(&lines, "{\"text\": %q}\n", strings.Repeat(fmt.Sprintf("word %d ", i), 1+i*i%40))
	}
	one, many := commandtest.NewLab(t), commandtest.NewLab(t)
	folder := t.TempDir()
	text, tokenizer := filepath.Join(folder, "text.jsonl"), filepath.Join(folder, "tokenizer.json")
	one.Write(text, lines.String())
	got := commandtest.Run(t, "tokenizer", "train", "--input", text, "--vocab-size", "300", "-o", tokenizer)
	require.Zero(t, got.Code, got.Stderr)
	args := []string{
		"train_data_path=" + text, "tokenizer_model=" + tokenizer, "vocab_size=0", "eod_mask_loss=true", "reset_attention_mask=true",
		"train_iters=12", "global_batch_size=8", "micro_batch_size=2", "eval_interval=4", "eval_iters=2",
	}
	got = one.Train(args...)
	require.Zero(t, got.Code, got.Stderr)
	trainRanks(t, many, "openmpi", 2, args...)
	checkLosses(t, one.Records(), many.Records())
}

// Examples and pairs of answers teach any number of ranks the same, which is evaluated with the
// same examples though the micro batches of ranks are smaller.
func TestRanksTuneAsOne(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	base := commandtest.NewLab(t)
	got := base.Train("train_iters=3")
	require.Zero(t, got.Code, got.Stderr)
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "{\"prompt\": \"say %d: \", \"response\": \"%d\", \"chosen\": \"%d\", \"rejected\": \"no\"}\n", i, i*i, i)
	}
	data := filepath.Join(base.Dir, "examples.jsonl")
	base.Write(data, lines.String())
	for name, args := range map[string][]string{
		"sft":       {"stage=sft", "use_distributed_optimizer=true"},
		"dpo":       {"stage=dpo", "dpo_beta=0.5"},
		"dpo apart": {"stage=dpo", "dpo_beta=0.5", "lora_rank=4", "tensor_model_parallel_size=2"},
	} {
		t.Run(name, func(t *testing.T) {
			one, many := commandtest.NewLab(t), commandtest.NewLab(t)
			args := append(args, "load_hf="+base.Checkpoints()[0], "train_data_path="+data, "valid_fraction=0.4", "micro_batch_size=4", "train_iters=6", "eval_interval=3", "eval_iters=2")
			got := one.Train(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.Contains(a, "_parallel") })...)
			require.Zero(t, got.Code, got.Stderr)
			trainRanks(t, many, "openmpi", 2, args...)
			checkLosses(t, one.Records(), many.Records())
		})
	}
	j := newJob(t, commandtest.NewLab(t), "mpich", []string{"4", "stage=dpo", "dpo_beta=0.5", "load_hf=" + base.Checkpoints()[0], "train_data_path=" + data})
	require.Error(t, j.Run())
	assert.Contains(t, j.Log.String(), "global_batch_size: given 4, of which a rank computes 1 at a time, want an even number")
}

// A run goes on with another number of ranks, and the same number gives the same bits, whenever
// gradients are sent.
func TestRanksGoOn(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	args := func(steps int) []string { return []string{fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=12"} }
	straight, stopped := commandtest.NewLab(t), commandtest.NewLab(t)
	trainRanks(t, straight, "openmpi", 2, args(12)...)
	trainRanks(t, stopped, "openmpi", 2, args(4)...)
	got := stopped.Train(args(8)...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "resuming from checkpoint step=4")
	trainRanks(t, stopped, "openmpi", 2, args(12)...)
	checkLosses(t, straight.Records(), stopped.Records())

	again := commandtest.NewLab(t)
	trainRanks(t, again, "openmpi", 2, append(args(12), "overlap_grad_reduce=true")...)
	assert.Equal(t, straight.Records(), again.Records())
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		first, err := os.ReadFile(filepath.Join(straight.Checkpoints()[0], name))
		require.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(again.Checkpoints()[0], name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(first, second), name)
	}
}

// The state of the optimizer, which the ranks share out among them, is the same in a checkpoint of
// any number of ranks.
func TestShardsGoOn(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	args := func(steps int, more ...string) []string {
		return append([]string{fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=12", "use_distributed_optimizer=true"}, more...)
	}
	whole, shards := commandtest.NewLab(t), commandtest.NewLab(t)
	trainRanks(t, whole, "openmpi", 2, args(4, "use_distributed_optimizer=false")...)
	trainRanks(t, shards, "openmpi", 2, args(4, "overlap_grad_reduce=true", "overlap_param_gather=true")...)
	checkLosses(t, whole.Records(), shards.Records())

	trainRanks(t, shards, "mpich", 4, args(8)...)
	got := shards.Train(args(12)...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "resuming from checkpoint step=8")
	got = whole.Train(args(12)...)
	require.Zero(t, got.Code, got.Stderr)
	checkLosses(t, whole.Records(), shards.Records())
}

// Ranks with delayed scaling of fp8 go on bit for bit: they have the same scales, from the largest
// magnitudes of all, and all of them get those of a checkpoint.
func TestRanksGoOnInFP8(t *testing.T) {
	args := func(steps int) []string {
		return []string{fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=8", "bf16=true", "fp8=hybrid", "use_distributed_optimizer=true"}
	}
	straight, stopped := commandtest.NewLab(t), commandtest.NewLab(t)
	trainRanks(t, straight, "openmpi", 2, args(8)...)
	trainRanks(t, stopped, "openmpi", 2, args(4)...)
	trainRanks(t, stopped, "openmpi", 2, args(8)...)
	assert.Equal(t, straight.Records(), stopped.Records())
}

// A checkpoint holds whole weights, whatever part of them the ranks have that save it.
func TestPartsGoOn(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for name, tt := range map[string]struct {
		model string
		args  []string
		parts []string
	}{
		"layers":   {"llama_2M", []string{"global_batch_size=8", "ema_decay=0.9", "eval_interval=5", "eval_iters=2"}, []string{"tensor_model_parallel_size=2"}},
		"gpt2":     {"gpt2_10M", []string{"global_batch_size=8"}, []string{"tensor_model_parallel_size=2"}},
		"experts":  {"moe_8x3M", []string{"num_experts=4", "moe_router_topk=2", "global_batch_size=8"}, []string{"expert_model_parallel_size=2"}},
		"adapters": {"llama_2M", []string{"global_batch_size=8", "lora_rank=4", "lora_target_modules=['q_proj', 'v_proj', 'o_proj', 'up_proj']", "lr=1e-2"}, []string{"tensor_model_parallel_size=2", "sequence_parallel=true"}},
		"muon":     {"llama_2M", []string{"global_batch_size=8", "optimizer=muon"}, []string{"tensor_model_parallel_size=2"}},
		"both":     {"moe_8x3M", []string{"num_experts=4", "moe_router_topk=2", "global_batch_size=8"}, []string{"tensor_model_parallel_size=2", "sequence_parallel=true", "expert_model_parallel_size=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := func(steps int, more ...string) []string {
				return slices.Concat([]string{fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=12"}, tt.args, more)
			}
			whole, parts := commandtest.NewLab(t), commandtest.NewLab(t)
			for _, l := range []*commandtest.Lab{whole, parts} {
				l.Edit("llama_2M", tt.model)
			}
			got := whole.Train(args(12)...)
			require.Zero(t, got.Code, got.Stderr)
			shards := "use_distributed_optimizer=" + strconv.FormatBool(name != "muon") // which needs whole matrices
			trainRanks(t, parts, "openmpi", 4, args(3, append(tt.parts, shards)...)...)
			trainRanks(t, parts, "mpich", 2, args(6, tt.parts...)...)
			got = parts.Train(args(9)...)
			require.Zero(t, got.Code, got.Stderr)
			assert.Contains(t, got.Stderr, "resuming from checkpoint step=6")
			text := trainRanks(t, parts, "openmpi", 2, args(12, tt.parts...)...)
			checkLosses(t, whole.Records(), parts.Records())
			got = parts.Train(args(12)...)
			require.Zero(t, got.Code, got.Stderr)
			assert.Equal(t, generated(t, got.Out), text, "one rank has the same weights, and nothing to train")
			got = commandtest.Run(t, "generate", "--checkpoint", parts.Path("checkpoints"), "--prompt", "func f", "--max-tokens", "4")
			require.Zero(t, got.Code, got.Stderr)
		})
	}
}

// Each rank reads its part of the weights that a run begins with.
func TestPartsBeginWithWeights(t *testing.T) {
	for name, tt := range map[string]struct {
		model string
		args  []string
		parts []string
	}{
		"gpt2":    {"gpt2_10M", []string{"global_batch_size=8"}, []string{"tensor_model_parallel_size=2", "sequence_parallel=true"}},
		"experts": {"moe_8x3M", []string{"num_experts=4", "moe_router_topk=2", "moe_ffn_hidden_size=64", "global_batch_size=8"}, []string{"expert_model_parallel_size=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			first, whole, parts := commandtest.NewLab(t), commandtest.NewLab(t), commandtest.NewLab(t)
			for _, l := range []*commandtest.Lab{first, whole, parts} {
				l.Edit("llama_2M", tt.model)
			}
			got := first.Train(append(tt.args, "train_iters=3", "lr_decay_iters=12")...)
			require.Zero(t, got.Code, got.Stderr)
			args := append(tt.args, "train_iters=6", "lr_decay_iters=12", "load_hf="+first.Checkpoints()[0])
			got = whole.Train(args...)
			require.Zero(t, got.Code, got.Stderr)
			trainRanks(t, parts, "mpich", 2, append(args, tt.parts...)...)
			checkLosses(t, whole.Records(), parts.Records())
			trainRanks(t, parts, "openmpi", 2, append(append(args, "train_iters=9"), tt.parts...)...)
			got = whole.Train(append(args, "train_iters=9")...)
			require.Zero(t, got.Code, got.Stderr)
			checkLosses(t, whole.Records(), parts.Records())
		})
	}
}

// Ranks that would compute otherwise train nothing and say what differs.
func TestRanksThatDiffer(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"parameter", []string{"lr=5e-3", "eval_interval=3"}, []string{"rank 1 differs from rank 0, so nothing was trained", "lr: given 0.005, want 0.002 as on rank 0", "eval_interval: given 3"}},
		{"dispatch", []string{"--per-op", "rmsnorm_fwd=reference"}, []string{`op "rmsnorm_fwd" is served by reference.go, want default.flagos`}},
		{"data", []string{"train_data_max_bytes=20000"}, []string{"fingerprint of the data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := commandtest.NewLab(t)
			j := newJob(t, l, "openmpi", []string{"1", "lr=2e-3"}, append([]string{"1", "lr=2e-3"}, tt.args...))
			require.Error(t, j.Run())
			for _, want := range tt.want {
				assert.Contains(t, j.Log.String(), want)
			}
			assert.NoFileExists(t, l.Path("metrics.jsonl"))
		})
	}
}

// A loss that is not finite ends all ranks, and the error names the rank and the op.
func TestRanksThatDiverge(t *testing.T) {
	l := commandtest.NewLab(t)
	j := newJob(t, l, "mpich", []string{"2", "lr=1e30", "min_lr=1e30", "lr_warmup_iters=0", "clip_grad=0"})
	require.Error(t, j.Run())
	assert.Contains(t, j.Log.String(), "it began on rank ")
	assert.Empty(t, l.Checkpoints())
}

// needMPICH skips a test of ranks that meet without a launcher of MPI.
func needMPICH(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("mpiexec.hydra"); err != nil {
		t.Skipf("no MPICH: %v", err)
	}
}

// Without a launcher of MPI, primus starts the ranks, or whatever sets the variables of torchrun.
func TestRanksWithoutMPIRun(t *testing.T) {
	needMPICH(t)
	one := commandtest.NewLab(t)
	got := one.Train("eval_interval=4", "eval_iters=2")
	require.Zero(t, got.Code, got.Stderr)
	t.Run("nproc", func(t *testing.T) {
		l := commandtest.NewLab(t)
		traces := t.TempDir()
		trace := filepath.Join(traces, "trace.json")
		l.Write(filepath.Join(traces, "trace.rank-7.json"), "of an earlier run")
		cmd := commandtest.Child(t.Context(), []string{"PRIMUS_NPROC=2"}, l.Args("eval_interval=4", "--threads", "1", "eval_iters=2", "--trace-file", trace, "--trace-steps", "2")...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), trace+" has the timelines of 2 ranks")
		checkTrace(t, trace, 2, "step 2", "step 3", "all_reduce")
		left, err := os.ReadDir(traces)
		require.NoError(t, err)
		assert.Len(t, left, 1, "the files of ranks are joined")
		assert.Equal(t, 1, strings.Count(string(out), " finished\n"))
		assert.Contains(t, string(out), "vendor.mpich")
		checkLosses(t, one.Records(), l.Records())
	})
	t.Run("variables of torchrun", func(t *testing.T) {
		l := commandtest.NewLab(t)
		port := strconv.Itoa(primustest.FreePort(t))
		var ranks []*job
		for rank := range 2 {
			env := []string{"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=2", "LOCAL_RANK=" + strconv.Itoa(rank), "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}
			ranks = append(ranks, start(t, l, env, "eval_interval=4", "eval_iters=2"))
		}
		for _, j := range ranks {
			require.NoError(t, j.Wait(), j.Log.String())
		}
		checkLosses(t, one.Records(), l.Records())
	})
}

// A rank that dies, or hangs, ends those that primus has started, and what is left says which.
func TestLostRanksOfPrimus(t *testing.T) {
	needMPICH(t)
	for _, tt := range []struct {
		rank   int
		signal syscall.Signal
		want   string
	}{
		{1, syscall.SIGKILL, " of 2 has failed: "}, // whatever sees it first has its say
		{0, syscall.SIGKILL, " of 2 has failed: "},
		{1, syscall.SIGSTOP, "the run cannot go on: rank 1 is gone: nothing was heard of it for 15s"},
	} {
		t.Run(fmt.Sprintf("%v/%d", tt.signal, tt.rank), func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			j := start(t, l, nil, "--nproc", "2", "train_iters=1000000", "log_interval=1000000", "exp_name=exp")
			j.WaitFor("step 1/")
			require.NoError(t, syscall.Kill(j.process(t, "RANK", tt.rank), tt.signal))
			require.Error(t, j.Wait())
			assert.Contains(t, j.Log.String(), tt.want)
			assert.NotContains(t, j.Log.String(), "ERROR", "the program that started the ranks prints what they left")
		})
	}
}

func TestNprocIsForNative(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Edit("framework: native", "framework: dummy")
	l.Edit("    config: pre_trainer.yaml\n    model: llama_2M.yaml\n", "    config: m.yaml\n    model: m.yaml\n")
	l.Write(filepath.Join(l.Dir, "modules", "dummy", "m.yaml"), "a: 1\n")
	l.Write(filepath.Join(l.Dir, "models", "dummy", "m.yaml"), "b: 1\n")
	got := l.Train("--configs-dir", l.Dir, "--nproc", "2")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "framework dummy are started with --nproc-per-node")
}

// started starts a long run and returns when it has trained a step.
func (j *job) started(t *testing.T) {
	t.Helper()
	require.NoError(t, j.Start())
	j.WaitFor("step 1/")
}

// process returns the process of a rank of this job.
func (j *job) process(t *testing.T, variable string, rank int) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range found {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte("\x00"+variable+"="+strconv.Itoa(rank)+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		require.NoError(t, err)
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		experiment := j.Args[slices.Index(j.Args, "--config")+1]
		if err == nil && bytes.Contains(command, []byte(experiment)) && bytes.HasPrefix(command, []byte(os.Args[0])) {
			return pid
		}
	}
	t.Fatalf("no process of rank %d", rank)
	return 0
}

// Ranks that share a device exchange gradients by way of the host, and train what one rank trains.
func TestRanksOnADevice(t *testing.T) {
	opencltest.Backend(t)
	one, many := commandtest.NewLab(t), commandtest.NewLab(t)
	args := []string{"train_iters=6", "device=opencl:0"}
	got := commandtest.RunChild(t, nil, one.Args(args...)...)
	require.Zero(t, got.Code, got.Stderr)
	trainRanks(t, many, "mpich", 2, append(args, "overlap_grad_reduce=true")...)
	checkLosses(t, one.Records(), many.Records())
	j := newJob(t, many, "mpich", append([]string{"2", "use_distributed_optimizer=true"}, args...))
	require.Error(t, j.Run())
	assert.Contains(t, j.Log.String(), "device: given opencl:0 in a run of 2 ranks with use_distributed_optimizer")
}
