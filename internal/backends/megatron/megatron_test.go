package megatron_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/backends/megatron"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newLab(params string) *traintest.Lab {
	return &traintest.Lab{Factory: megatron.Factory(), Patches: megatron.Patches(), Params: params}
}

func TestTreeAndVersion(t *testing.T) {
	l := newLab("lr: 1.0e-4\n")
	p, err := l.Plan(t)
	require.NoError(t, err)
	require.Len(t, p.Problems, 1)
	assert.Contains(t, p.Problems[0], "no source tree in third_party/Megatron-LM")
	assert.Empty(t, p.Version)

	l.BackendPath = traintest.Tree(t, map[string]string{
		"megatron/core/package_info.py": "MAJOR = 0\nMINOR = 16\nPATCH = 0\nPRE_RELEASE = 'rc0'\nVERSION = (MAJOR, MINOR)\n",
	})
	p, err = l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "0.16.0rc0", p.Version)
	assert.Equal(t, []string{l.BackendPath}, p.Paths.PythonPath)
	assert.Empty(t, p.Problems)
}

func TestArguments(t *testing.T) {
	l := newLab(`
save: ./ckpt
train_data_path: "0.5 a 0.5 b"
valid_data_path: [c]
iterations_to_skip: null
sequence_parallel: 1
tensor_model_parallel_size: 1
disable_tensorboard: true
tensorboard_dir: mine
trainer_class: FluxPretrainTrainer
`)
	p, err := l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "FluxPretrainTrainer", p.Trainer)
	for path, want := range map[string]string{
		"save": `"` + l.Dir + `/g/u/e/checkpoints"`, "train_data_path": `["0.5","a","0.5","b"]`, "valid_data_path": `["c"]`,
		"iterations_to_skip": "[]", "sequence_parallel": "false", "tensorboard_dir": `"mine"`,
	} {
		got, _ := traintest.Argument(p, path)
		assert.Equal(t, want, got, path)
	}
	_, source := traintest.Argument(p, "sequence_parallel")
	assert.Equal(t, "patch megatron.args.sequence_parallel_tp1", source)
	assert.NotEmpty(t, p.Conflicts, "a value that a patch replaces is reported")
}

func TestMockData(t *testing.T) {
	p, err := newLab("mock_data: true\ntrain_data_path: a b\nsave: null\n").Plan(t)
	require.NoError(t, err)
	for path, want := range map[string]string{
		"train_data_path": "null", "tokenizer_type": `"NullTokenizer"`, "vocab_size": "131072", "save": "null",
	} {
		got, _ := traintest.Argument(p, path)
		assert.Equal(t, want, got, path)
	}
	p, err = newLab("mock_data: true\nvocab_size: 7\n").Plan(t)
	require.NoError(t, err)
	got, _ := traintest.Argument(p, "vocab_size")
	assert.Equal(t, "7", got)
}

// Users know these patches by the ids and the order that they have in Primus.
func TestPatchesHaveTheIDsOfPrimus(t *testing.T) {
	p, err := newLab("mock_data: true\nsave: x\ntrain_data_path: a b\niterations_to_skip: null\nsequence_parallel: true\nmoe_layer_freq: '[1]*2'\n").Plan(t)
	require.NoError(t, err)
	assert.Contains(t, p.UnknownPatches, "more patches for megatron")
	var ids []string
	for _, d := range p.Phases[0].Decisions {
		if d.Run {
			ids = append(ids, d.Patch.ID)
		}
	}
	assert.Equal(t, []string{
		"megatron.args.checkpoint_path", "megatron.args.data_path_split", "megatron.args.hsdp", "megatron.args.iterations_to_skip_default",
		"megatron.args.mock_data", "megatron.args.moe_layer_freq", "megatron.args.sequence_parallel_tp1", "megatron.args.tensorboard_path",
		"megatron.args.wandb_config",
	}, ids)
}

func TestFaults(t *testing.T) {
	_, err := newLab("micro_batch_size: two\n").Plan(t)
	require.ErrorContains(t, err, `micro_batch_size: given string "two", want a whole number`)
	_, err = newLab("stage: dpo\n").Plan(t)
	assert.ErrorContains(t, err, `given stage "dpo", want pretrain or sft or mlperf_pretrain`)
}

func TestLayerFrequency(t *testing.T) {
	for text, want := range map[string]string{
		"([0]*1+[1]*3)": "[0,1,1,1]", "[0]*(4-3)+2*[1]": "[0,1,1]", "1": "1", "-1": "-1", "[1]*-1": "[]", "layers": `"layers"`, "[1]*99999999": `"[1]*99999999"`,
	} {
		p, err := newLab("moe_layer_freq: '" + text + "'\n").Plan(t)
		require.NoError(t, err)
		got, _ := traintest.Argument(p, "moe_layer_freq")
		assert.Equal(t, want, got, text)
	}
}
