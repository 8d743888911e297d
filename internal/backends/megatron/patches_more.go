package megatron

import (
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/patch"
)

// replicate copies the degree of replication, which if given is also the number of optimizer
// instances.
func replicate(c *patch.Context) error {
	degree, err := patch.Param(c, "data_parallel_replicate_degree", int64(1))
	if err != nil {
		return err
	}
	if err := c.SetArg("data_parallel_replicate_degree", degree); err != nil || degree <= 1 {
		return err
	}
	if !c.IsSet("use_torch_fsdp2") {
		return fmt.Errorf("data_parallel_replicate_degree: given %d, which needs use_torch_fsdp2: true", degree)
	}
	if format, err := patch.Param(c, "ckpt_format", "torch_dist"); err != nil || format != "torch_dcp" {
		return fmt.Errorf("data_parallel_replicate_degree: given %d, which needs ckpt_format: torch_dcp, not %s", degree, format)
	}
	return c.SetArg("num_distributed_optimizer_instances", degree)
}

// layerFrequency evaluates an expression such as ([0]*1+[1]*26). Other texts stay unchanged.
func layerFrequency(c *patch.Context) error {
	v, _ := c.Value("moe_layer_freq")
	value, err := pyreader.Numbers(v.Text())
	if err != nil {
		c.Log.Warn(fmt.Sprintf("moe_layer_freq: %q %v, so it stays unchanged", v.Text(), err))
		return nil
	}
	return c.SetArg("moe_layer_freq", value)
}

// weightsAndBiases names what Weights & Biases shows, unless disable_wandb is set.
func weightsAndBiases(c *patch.Context) error {
	if c.IsSet("disable_wandb") {
		if _, given := c.Value("wandb_project"); !given {
			return nil
		}
		return c.SetArg("wandb_project", nil)
	}
	e := c.Train.Experiment
	if err := c.SetArg("wandb_save_dir", filepath.Join(e.RootPath(), "wandb")); err != nil {
		return err
	}
	for _, v := range [][2]string{{"wandb_project", e.WorkGroup + "_" + e.UserName}, {"wandb_exp_name", e.ExpName}} {
		if _, given := c.Value(v[0]); given {
			continue
		}
		if err := c.SetArg(v[0], v[1]); err != nil {
			return err
		}
	}
	return nil
}

var isKimi = patch.Condition{Text: "model_type is kimi_k3", Holds: func(c *patch.Context) (bool, error) {
	kind, ok := c.Value("model_type")
	return ok && kind.Text() == "kimi_k3", nil
}}

func kimiLatentSize(c *patch.Context) error {
	size, err := patch.Param(c, "routed_expert_hidden_size", int64(0))
	if err != nil || size == 0 {
		return err
	}
	if own, err := patch.Param(c, "moe_latent_size", size); err != nil || own != size {
		return fmt.Errorf("moe_latent_size: given %d, but routed_expert_hidden_size, which is the same size, is %d: leave one of them out", own, size)
	}
	return c.SetArg("moe_latent_size", size)
}

func kimiPredictLayers(c *patch.Context) error {
	if _, given := c.Value("num_nextn_predict_layers"); !given {
		return nil
	}
	layers, err := patch.Param(c, "num_nextn_predict_layers", int64(0))
	if err != nil {
		return err
	}
	if layers == 0 {
		return c.SetArg("mtp_num_layers", nil)
	}
	return c.SetArg("mtp_num_layers", layers)
}
