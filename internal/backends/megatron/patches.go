package megatron

import (
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/patch"
)

// Patches returns the rewrites of arguments of Primus that this program makes itself, under the
// same ids. Most other patches of Primus replace functions of its Python process.
func Patches() []patch.Patch {
	rewrite := func(id, description string, when patch.Condition, apply func(*patch.Context) error, args ...string) patch.Patch {
		p := patch.Patch{
			ID: "megatron.args." + id, Description: description, Backend: Framework, Phase: patch.BuildArgs,
			Style: patch.ArgRewrite, Condition: when,
			Apply: func(c *patch.Context) error {
				c.Changed() // also where the argument had the value before
				return apply(c)
			},
		}
		for _, arg := range args {
			p.Symbols = append(p.Symbols, "arg:"+arg)
		}
		return p
	}
	return []patch.Patch{
		rewrite("checkpoint_path", "Put checkpoints below the directory of the experiment",
			notNull("save"), saveInExperiment, "save"),
		rewrite("data_path_split", "Split the texts of data paths at spaces",
			patch.Condition{Text: "a data path is a text", Holds: func(c *patch.Context) (bool, error) {
				return len(pathTexts(c)) > 0, nil
			}}, splitDataPaths, dataPaths...),
		rewrite("iterations_to_skip_default", "Turn a null list of iterations to skip into an empty one",
			patch.Condition{Text: "iterations_to_skip is null", Holds: func(c *patch.Context) (bool, error) {
				v, given := c.Params.Get("iterations_to_skip")
				return given && v.IsNull(), nil
			}},
			func(c *patch.Context) error { return c.SetArg("iterations_to_skip", []any{}) }, "iterations_to_skip"),
		rewrite("mock_data", "Leave data paths and tokenizer out of runs on mock data",
			patch.When("mock_data"), mockData, append([]string{"tokenizer_type", "vocab_size"}, dataPaths...)...),
		rewrite("sequence_parallel_tp1", "Switch sequence parallelism off where there is no tensor parallelism",
			patch.Condition{Text: "tensor_model_parallel_size is 1", Holds: func(c *patch.Context) (bool, error) {
				size, err := patch.Param(c, "tensor_model_parallel_size", int64(1))
				return size == 1, err
			}},
			func(c *patch.Context) error { return c.SetArg("sequence_parallel", false) }, "sequence_parallel"),
		rewrite("tensorboard_path", "Put TensorBoard files below the directory of the experiment, unless disable_tensorboard is set",
			patch.Condition{}, tensorboardDir, "tensorboard_dir"),
		rewrite("hsdp", "Give Megatron the degree of replication as its number of optimizer instances",
			patch.Condition{}, replicate, "data_parallel_replicate_degree", "num_distributed_optimizer_instances"),
		rewrite("moe_layer_freq", "Turn an expression of lists into the list that it means",
			patch.Condition{Text: "moe_layer_freq is a text", Holds: func(c *patch.Context) (bool, error) {
				v, ok := c.Value("moe_layer_freq")
				return ok && v.Kind() == document.KindString, nil
			}}, layerFrequency, "moe_layer_freq"),
		rewrite("wandb_config", "Name project, run and directory of Weights & Biases after the experiment, or switch it off",
			patch.Condition{}, weightsAndBiases, "wandb_project", "wandb_exp_name", "wandb_save_dir"),
		rewrite("kimi_k3_moe_latent_size", "Give Megatron the latent size of the experts under its own name",
			isKimi, kimiLatentSize, "moe_latent_size"),
		rewrite("kimi_k3_mtp_num_layers", "Give Megatron the number of layers that predict further tokens under its own name",
			isKimi, kimiPredictLayers, "mtp_num_layers"),
	}
}

// dataPaths are the arguments that name data, as a text with spaces or a list.
var dataPaths = []string{"data_path", "train_data_path", "valid_data_path", "test_data_path"}

// notNull is the condition that a parameter is given and not null.
func notNull(key string) patch.Condition {
	return patch.Condition{Text: key + " is not null", Holds: func(c *patch.Context) (bool, error) {
		_, ok := c.Value(key)
		return ok, nil
	}}
}

func saveInExperiment(c *patch.Context) error {
	return setPath(c, "save", "checkpoints")
}

// setPath sets an argument to an absolute path below the directory of the experiment.
func setPath(c *patch.Context, arg, below string) error {
	dir, err := filepath.Abs(filepath.Join(c.Train.Experiment.RootPath(), below))
	if err != nil {
		return err
	}
	return c.SetArg(arg, dir)
}

// pathTexts returns the data paths that are texts.
func pathTexts(c *patch.Context) map[string]string {
	texts := map[string]string{}
	for _, key := range dataPaths {
		if v, ok := c.Value(key); ok && v.Kind() == document.KindString {
			texts[key] = v.Text()
		}
	}
	return texts
}

func splitDataPaths(c *patch.Context) error {
	for key, text := range pathTexts(c) {
		if err := c.SetArg(key, strings.Fields(text)); err != nil {
			return err
		}
	}
	return nil
}

func mockData(c *patch.Context) error {
	for _, key := range dataPaths {
		if c.Args.Has(key) {
			if err := c.SetArg(key, nil); err != nil {
				return err
			}
		}
	}
	if err := c.SetArg("tokenizer_type", "NullTokenizer"); err != nil {
		return err
	}
	if _, given := c.Value("vocab_size"); given {
		return nil
	}
	const mockVocab = 131072
	return c.SetArg("vocab_size", mockVocab)
}

// tensorboardDir leaves the directory as it is where disable_tensorboard says so and no profile
// needs it.
func tensorboardDir(c *patch.Context) error {
	if c.IsSet("disable_tensorboard") && !c.IsSet("profile") {
		return nil
	}
	return setPath(c, "tensorboard_dir", "tensorboard")
}
