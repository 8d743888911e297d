package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// A process of a job whose other ranks it cannot reach trains nothing.
func TestAnUnconnectedWorldIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"first rank", map[string]string{"RANK": "0", "WORLD_SIZE": "2"}, []string{"the 2 ranks cannot reach each other", "reference.local", "serves a job of one", "mpirun"}},
		{"last rank", map[string]string{"RANK": "1", "WORLD_SIZE": "2"}, []string{"the 2 ranks cannot reach each other"}},
		{"nodes", map[string]string{"NODE_RANK": "1", "NNODES": "2"}, []string{"the 2 ranks cannot reach each other"}},
		{"local", map[string]string{"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "8"}, []string{"LOCAL_WORLD_SIZE"}},
		{"uneven ranks", map[string]string{"RANK": "1", "WORLD_SIZE": "3"}, []string{"global_batch_size: given 4, want a multiple of 6, which is micro_batch_size 2 on 3 ranks"}},
		{"Open MPI", map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}, []string{"the 2 ranks cannot reach each other"}},
		{"PMI", map[string]string{"PMI_SIZE": "2", "PMI_RANK": "1"}, []string{"the 2 ranks cannot reach each other"}},
		{"MVAPICH2", map[string]string{"MV2_COMM_WORLD_SIZE": "2"}, []string{"mpirun of MVAPICH2 has started 2 processes (MV2_COMM_WORLD_SIZE)", "WORLD_SIZE=1"}},
		{"MVAPICH2 with one node", map[string]string{"MV2_COMM_WORLD_SIZE": "2", "NNODES": "1"}, []string{"MVAPICH2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.env = tt.env
			err := l.train(t.Context(), "run")
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NoFileExists(t, filepath.Join(l.path("run"), "metrics.jsonl"))
			assert.NoDirExists(t, filepath.Join(l.path("run"), "checkpoints"))
		})
	}
}

// A world of one is none, and WORLD_SIZE=1 makes runs of the tasks of a launcher.
func TestAWorldOfOneTrains(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, env := range map[string]map[string]string{
		"torchrun": {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"},
		"MVAPICH2": {"MV2_COMM_WORLD_SIZE": "x"},
		"sweep":    {"MV2_COMM_WORLD_SIZE": "4", "WORLD_SIZE": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.env = env
			require.NoError(t, l.train(t.Context(), "run", "train_iters=1"))
		})
	}
}

// What ranks that share a model cannot do is refused before anything is read.
func TestWhatPartsCannotDo(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"tensor_model_parallel_size=3"}, "tensor_model_parallel_size: given 3, want a divisor of num_attention_heads"},
		{[]string{"tensor_model_parallel_size=2", "attention_dropout=0.1", "seq_length=31"}, "want 1 with attention_dropout where"},
		{[]string{"tensor_model_parallel_size=2", "lora_rank=2", "lora_dropout=0.1"}, "lora_dropout: given 0.1, want 0 with tensor_model_parallel_size 2"},
		{[]string{"tensor_model_parallel_size=2", "qk_layernorm=true", "qk_layernorm_whole=true"}, "qk_layernorm_whole: given true, want false with tensor_model_parallel_size 2"},
		{[]string{"tensor_model_parallel_size=2", "vocab_size=1"}, "tensor_model_parallel_size: given 2, want at most vocab_size 1"},
		{[]string{"tensor_model_parallel_size=2", "sequence_parallel=true", "seq_length=31"}, "seq_length that tensor_model_parallel_size 2 divides, in place of 31"},
		{[]string{"tensor_model_parallel_size=2", "sequence_parallel=true", "hidden_dropout=0.1", "seq_length=2", "hidden_size=34", "kv_channels=16"}, "a part of a sequence of 1·34 elements"},
		{[]string{"tensor_model_parallel_size=2", "num_experts=4"}, "sequence_parallel: given false, want true with num_experts 4"},
		{[]string{"expert_model_parallel_size=2"}, "expert_model_parallel_size: given 2, want a divisor of num_experts 0"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			l := newLab(t)
			l.env = map[string]string{"RANK": "0", "WORLD_SIZE": "2"}
			assert.ErrorContains(t, l.train(t.Context(), "run", tt.args...), tt.want)
		})
	}
}
