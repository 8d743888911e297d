package megatron

import (
	"fmt"
	"math/big"
	"path/filepath"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
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

// maxLayers bounds the length of the list that moe_layer_freq means.
const maxLayers = 1 << 16

// layerFrequency evaluates an expression such as ([0]*1+[1]*26). Other texts stay unchanged.
func layerFrequency(c *patch.Context) error {
	v, _ := c.Value("moe_layer_freq")
	parsed, err := pysource.Parse("moe_layer_freq", []byte(v.Text()+"\n"))
	if err != nil || len(parsed.Body) != 1 {
		c.Log.Warn(fmt.Sprintf("moe_layer_freq: %q is not an expression, so it stays unchanged", v.Text()))
		return nil
	}
	statement, ok := parsed.Body[0].(*pysource.ExprStmt)
	if !ok {
		return nil
	}
	value, ok := evaluate(statement.Value)
	if !ok {
		c.Log.Warn(fmt.Sprintf("moe_layer_freq: %q has more than numbers and lists that are added and repeated, so it stays unchanged", v.Text()))
		return nil
	}
	return c.SetArg("moe_layer_freq", value)
}

// evaluate returns the int64 or the []any of them that an expression of numbers, lists, +, - and *
// means.
func evaluate(e pysource.Expr) (any, bool) {
	switch e := e.(type) {
	case *pysource.Constant:
		n, ok := e.Value.(*big.Int)
		if !ok || !n.IsInt64() {
			return nil, false
		}
		return n.Int64(), true
	case *pysource.List:
		items := []any{}
		for _, each := range e.Elts {
			value, ok := evaluate(each)
			if !ok {
				return nil, false
			}
			items = append(items, value)
		}
		return items, true
	case *pysource.UnaryOp:
		value, ok := evaluate(e.Operand)
		n, isInt := value.(int64)
		return -n, ok && isInt && e.Op == "-"
	case *pysource.BinOp:
		left, okLeft := evaluate(e.Left)
		right, okRight := evaluate(e.Right)
		if !okLeft || !okRight {
			return nil, false
		}
		return combine(left, e.Op, right)
	}
	return nil, false
}

func combine(left any, op string, right any) (any, bool) {
	switch l := left.(type) {
	case int64:
		switch r := right.(type) {
		case int64:
			switch op {
			case "+":
				return l + r, true
			case "-":
				return l - r, true
			case "*":
				return l * r, true
			}
			return nil, false
		case []any:
			return combine(r, op, l)
		}
	case []any:
		switch r := right.(type) {
		case []any:
			return append(append([]any{}, l...), r...), op == "+" && len(l)+len(r) <= maxLayers
		case int64:
			if op != "*" || r*int64(len(l)) > maxLayers {
				return nil, false
			}
			repeated := []any{}
			for range r {
				repeated = append(repeated, l...)
			}
			return repeated, true
		}
	}
	return nil, false
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
