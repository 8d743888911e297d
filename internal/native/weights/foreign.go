package weights

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/torchfile"
	"github.com/primus-fl/primus/tensor"
)

// Import opens a checkpoint of TorchTitan, a directory of torch.distributed.checkpoint, as a folder
// of weights. Such a checkpoint does not say its architecture: that, and the tokenizer, are those
// of a folder of Hugging Face, whose weights are not needed. The caller closes the Folder.
func Import(checkpoint, like string) (*Folder, error) {
	f := &Folder{path: like}
	if err := f.describe(); err != nil {
		return nil, err
	}
	c, err := torchfile.OpenCheckpoint(checkpoint)
	if err != nil {
		return nil, fmt.Errorf("weights: %w; want a directory that torch.distributed.checkpoint has written", err)
	}
	f.files = []io.Closer{c}
	if f.where, err = foreign(c, f.config, f.class); err != nil {
		return nil, errors.Join(fmt.Errorf("weights: %s: %w", checkpoint, err), f.Close())
	}
	return f, nil
}

// foreign returns the tensors of a checkpoint by their names in Hugging Face's class.
func foreign(c *torchfile.Checkpoint, config model.Config, class string) (map[string]source, error) {
	all := names{where: map[string]source{}, config: config, interleaved: class == "llama"}
	all.names, _ = config.Names()
	for _, name := range c.Names() {
		if states.MatchString(name) {
			continue
		}
		t := c.Tensor(name)
		bare := strings.TrimPrefix(name, "model.")
		if !all.titan(bare, t) {
			all.add(name, whole(name, t))
		}
	}
	if all.twice != nil {
		return nil, errors.Join(all.twice...)
	}
	if _, ok := all.where[all.names.Embedding+".weight"]; !ok {
		return nil, fmt.Errorf("given the tensors %s, want tok_embeddings.weight and the others of a model of TorchTitan", short([]byte(`"`+strings.Join(c.Names(), " ")+`"`)))
	}
	return all.where, nil
}

// states matches what a checkpoint has besides weights.
var states = regexp.MustCompile(`^(optimizer|lr_scheduler|dataloader|train_state)\b|(^|\.)freqs_cis$`)

// names gives tensors the names of Hugging Face's class.
type names struct {
	names       architecture.Names
	where       map[string]source
	config      model.Config
	interleaved bool // the two numbers of a pair that is rotated lie side by side
	twice       []error
}

func (n *names) add(name string, s source) {
	if other, ok := n.where[name]; ok {
		n.twice = append(n.twice, fmt.Errorf("given both %q and %q, want one tensor for %s", other.name, s.name, name))
	}
	n.where[name] = s
}

// titanTensor matches the names of TorchTitan.
var titanTensor = regexp.MustCompile(`^layers\.(\d+)\.(.+)$`)

// titan adds a tensor of TorchTitan and reports whether the name is one of its.
func (n *names) titan(name string, t *torchfile.Tensor) bool {
	top := map[string]string{"tok_embeddings.weight": n.names.Embedding, "norm.weight": n.names.FinalNorm, "output.weight": n.names.Head, "lm_head.weight": n.names.Head}
	if to, ok := top[name]; ok {
		n.add(to+".weight", whole(name, t))
		return true
	}
	parts := titanTensor.FindStringSubmatch(name)
	if parts == nil {
		return false
	}
	layer, part := n.names.Layers+parts[1]+".", strings.Replace(parts[2], ".qkv_linear.", ".", 1)
	attention, mlp := layer+n.names.Attention, layer+n.names.MLP
	to, ok := map[string]string{
		"attention.wq.weight": attention + n.names.Q, "attention.wk.weight": attention + n.names.K, "attention.wv.weight": attention + n.names.V,
		"attention.wq.bias": attention + n.names.Q, "attention.wk.bias": attention + n.names.K, "attention.wv.bias": attention + n.names.V,
		"attention.wo.weight": attention + n.names.Out, "attention.q_norm.weight": attention + n.names.QNorm, "attention.k_norm.weight": attention + n.names.KNorm,
		"feed_forward.w1.weight": mlp + n.names.Gate, "feed_forward.w3.weight": mlp + n.names.Up, "feed_forward.w2.weight": mlp + n.names.Down,
		"attention_norm.weight": layer + n.names.InputNorm, "ffn_norm.weight": layer + n.names.PostNorm,
		"moe.router.gate.weight": layer + n.names.Router,
	}[part]
	if ok {
		s := whole(name, t)
		if n.interleaved && (strings.HasPrefix(part, "attention.wq.") || strings.HasPrefix(part, "attention.wk.")) {
			s = n.halves(name, t)
		}
		n.add(to+part[strings.LastIndex(part, "."):], s)
		return true
	}
	expert, ok := map[string]string{"moe.experts.w1": n.names.ExpertGate, "moe.experts.w3": n.names.ExpertUp, "moe.experts.w2": n.names.ExpertDown}[part]
	if !ok || len(t.Shape) != 3 {
		return false
	}
	for e := range t.Shape[0] {
		n.add(layer+n.names.Experts+strconv.Itoa(e)+"."+expert+".weight", selected(name, t, t.Shape[1:], func(i int) int { return e*t.Shape[1] + i }))
	}
	return true
}

// halves returns the rows of a projection of queries or keys with the first numbers of all pairs of
// a head before the second ones, as transformers has them.
func (n *names) halves(name string, t *torchfile.Tensor) source {
	head := n.config.HeadDim()
	half := head / 2
	return selected(name, t, t.Shape, func(i int) int {
		at := i % head
		return i - at + at%half*2 + at/half
	})
}

// whole returns a tensor as it is.
func whole(name string, t *torchfile.Tensor) source {
	return selected(name, t, t.Shape, func(i int) int { return i })
}

// selected returns rows of a tensor.
func selected(name string, t *torchfile.Tensor, shape tensor.Shape, row func(i int) int) source {
	return source{name, t.DType, shape, func() (*io.SectionReader, error) {
		n := 1
		if len(shape) > 0 {
			n = shape[0]
		}
		return t.Rows(n, row), nil
	}}
}
