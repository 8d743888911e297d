package train_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Stages of a pipeline train the model that one rank trains, in every schedule and together with
// the other ways in which ranks divide the work.
func TestStagesTrainAsOne(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	schedules := [][]string{
		{"pp_algorithm=gpipe"}, {"pp_algorithm=1f1b"}, {"num_virtual_stages_per_pipeline_rank=2"}, {"pp_algorithm=zero-bubble"},
		{"pp_algorithm=zbv-formatted"}, {"pp_algorithm=v-half"}, {"pp_algorithm=v-min"}, {"pp_algorithm=dualpipe-v"}, {"pp_algorithm=auto"},
		{"pipeline_model_parallel_layout=Et*3|t*5L"}, {"recompute_granularity=full", "recompute_num_layers=2"},
	}
	layouts := []struct {
		model  string
		ranks  int
		within float64
		args   []string
	}{
		{"llama_2M", 2, asOne, nil},
		{"gpt2_10M", 2, asOne, []string{"hidden_dropout=0.1", "use_distributed_optimizer=true"}},
		{"llama_2M", 4, asOne, []string{"use_distributed_optimizer=true", "overlap_grad_reduce=true", "overlap_param_gather=true", "ema_decay=0.8"}},
		{"llama_2M", 4, asOne, []string{"tensor_model_parallel_size=2", "sequence_parallel=true", "clip_grad=0.1"}},
		{"moe_8x3M", 4, asOne, []string{"num_experts=4", "moe_router_topk=2", "expert_model_parallel_size=2"}},
		{"llama_2M", 2, asBF16, []string{"bf16=true"}},
		{"llama_2M", 2, asOne, []string{"optimizer=sgd", "lora_rank=4"}},
		{"llama_2M", 8, asOne, []string{"tensor_model_parallel_size=2", "use_distributed_optimizer=true"}},
	}
	type run struct{ schedule, layout int }
	var all []run
	for schedule := range schedules {
		for layout := range layouts {
			all = append(all, run{schedule, layout})
		}
	}
	rand.New(rand.NewPCG(7, 8)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	// What the first and the last stage have in common is often wrong, so these are always tried.
	layouts = append(layouts, layouts[1], layouts[1], layouts[0])
	shared := all[:0:0]
	for i, more := range [][]string{{"lr_layer_decay=0.5"}, {"lora_rank=4"}, {"optimizer=muon"}} {
		at := len(layouts) - 3 + i
		layouts[at].args = more
		shared = append(shared, run{1, at})
	}
	launchers := []string{"openmpi", "mpich"}
	for i, r := range append(shared, all[:primustest.Cases(4, len(all))]...) {
		l := layouts[r.layout]
		args := slices.Concat([]string{
			"num_layers=8", "seq_length=32", "train_iters=4", "eval_interval=2", "eval_iters=3", "final_eval_windows=8", "global_batch_size=8", "micro_batch_size=1", "pipeline_model_parallel_size=2",
		}, schedules[r.schedule], l.args)
		t.Run(strings.Join(append([]string{l.model, fmt.Sprint(l.ranks)}, args[9:]...), " "), func(t *testing.T) {
			one, many := commandtest.NewLab(t), commandtest.NewLab(t)
			for _, lab := range []*commandtest.Lab{one, many} {
				lab.Edit("llama_2M", l.model)
			}
			got := one.Train(slices.DeleteFunc(slices.Clone(args), func(a string) bool {
				return strings.Contains(a, "parallel") || strings.HasPrefix(a, "pp_") || strings.Contains(a, "virtual")
			})...)
			require.Zero(t, got.Code, got.Stderr)
			trainRanks(t, many, launchers[i%2], l.ranks, args...)
			checkWithin(t, l.within, one.Records(), many.Records())
		})
	}
}

// A run goes on in any other layout, from the same weights and state.
func TestStagesGoOn(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	args := func(steps int, more ...string) []string {
		return append([]string{fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=10", "num_layers=8", "seq_length=32", "global_batch_size=8", "micro_batch_size=1", "ema_decay=0.9"}, more...)
	}
	whole, parts := commandtest.NewLab(t), commandtest.NewLab(t)
	got := whole.Train(args(10)...)
	require.Zero(t, got.Code, got.Stderr)
	trainRanks(t, parts, "openmpi", 2, args(2, "pipeline_model_parallel_size=2", "pp_algorithm=zbv")...)
	trainRanks(t, parts, "mpich", 4, args(4, "pipeline_model_parallel_size=4", "use_distributed_optimizer=true")...)
	trainRanks(t, parts, "openmpi", 4, args(6, "pipeline_model_parallel_size=2", "use_distributed_optimizer=true", "num_virtual_stages_per_pipeline_rank=2")...)
	trainRanks(t, parts, "mpich", 2, args(8, "tensor_model_parallel_size=2")...)
	got = parts.Train(args(9)...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "resuming from checkpoint step=8")
	trainRanks(t, parts, "mpich", 2, args(10, "pipeline_model_parallel_size=2", "pp_algorithm=v-min", "async_save=true")...)
	checkLosses(t, whole.Records(), parts.Records())
	got = commandtest.Run(t, "generate", "--checkpoint", parts.Path("checkpoints"), "--prompt", "func f", "--max-tokens", "4")
	require.Zero(t, got.Code, got.Stderr)
}

// A stage that dies ends the others, whatever the schedule.
func TestLostStages(t *testing.T) {
	needMPICH(t)
	for _, algorithm := range []string{"1f1b", "zbv"} {
		for rank := range 2 {
			t.Run(fmt.Sprintf("%s/%d", algorithm, rank), func(t *testing.T) {
				t.Parallel()
				j := start(t, commandtest.NewLab(t), nil, "--nproc", "2", "train_iters=1000000", "log_interval=1000000", "exp_name=exp", "num_layers=4",
					"pipeline_model_parallel_size=2", "pp_algorithm="+algorithm, "global_batch_size=4", "micro_batch_size=1")
				j.WaitFor("step 1/")
				require.NoError(t, syscall.Kill(j.process(t, "RANK", rank), syscall.SIGKILL))
				require.Error(t, j.Wait())
				assert.Contains(t, j.Log.String(), " of 2 has failed: ")
			})
		}
	}
}
