package weights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/torchfile"
	"github.com/primus-fl/primus/tensor"
)

// Import opens a checkpoint of TorchTitan or Megatron, or the newest one in a directory of them, as
// a folder of weights. It does not say its architecture: that, and the tokenizer, are those of a
// folder of Hugging Face, whose weights are not needed. The caller closes the Folder.
func Import(ctx context.Context, checkpoint, like string) (*Folder, error) {
	f := &Folder{path: like}
	if err := f.describe(); err != nil {
		return nil, err
	}
	c, err := openForeign(ctx, checkpoint)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	f.files = []io.Closer{c}
	if f.where, err = f.foreign(c); err != nil {
		return nil, errors.Join(fmt.Errorf("weights: %s: %w", checkpoint, err), f.Close())
	}
	return f, nil
}

var (
	stepName = regexp.MustCompile(`^(?:step-|iter_)(\d+)$`)
	rankName = regexp.MustCompile(`^mp_rank_\d`)
)

// openForeign opens what a directory stands for.
func openForeign(ctx context.Context, dir string) (*torchfile.Checkpoint, error) {
	steps, err := matching(dir, stepName)
	if err != nil {
		return nil, durable.Explain(err)
	}
	slices.SortFunc(steps, func(a, b string) int {
		return number(stepName.FindStringSubmatch(a)[1]) - number(stepName.FindStringSubmatch(b)[1])
	})
	if len(steps) > 0 {
		dir = filepath.Join(dir, steps[len(steps)-1])
	}
	if exists(dir, torchfile.MetadataName) {
		return torchfile.OpenCheckpoint(ctx, dir)
	}
	ranks, err := matching(dir, rankName)
	switch {
	case err != nil:
		return nil, durable.Explain(err)
	case len(ranks) > 1:
		return nil, fmt.Errorf("%s: given the parts of %d ranks (mp_rank_*), want one: save with ckpt_format: torch_dist, whose parts are joined", dir, len(ranks))
	case len(ranks) == 0:
		return nil, fmt.Errorf("%s has no %s, no mp_rank_00 and no directories step-N or iter_N: want a checkpoint of TorchTitan or Megatron", dir, torchfile.MetadataName)
	}
	return torchfile.OpenSaved(ctx, filepath.Join(dir, ranks[0], "model_optim_rng.pt"), "model")
}

// isForeign reports whether openForeign takes a directory for a checkpoint, or for several.
func isForeign(dir string) bool {
	steps, _ := matching(dir, stepName)
	ranks, _ := matching(dir, rankName)
	return exists(dir, torchfile.MetadataName) || len(steps)+len(ranks) > 0
}

// matching returns the names in a directory that a pattern matches.
func matching(dir string, pattern *regexp.Regexp) ([]string, error) {
	files, err := os.ReadDir(dir)
	var names []string
	for _, f := range files {
		if pattern.MatchString(f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// number returns the number of a step, 0 for one that no run reaches.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// states matches what a checkpoint has besides weights.
var states = regexp.MustCompile(`^(optimizer|lr_scheduler|dataloader|train_state|rng_state|rerun_state_machine_state)\b|(^|\.)(freqs_cis|_extra_state)\b`)

// foreign returns the tensors of a checkpoint by their names in Hugging Face's class.
func (f *Folder) foreign(c *torchfile.Checkpoint) (map[string]source, error) {
	all := names{where: map[string]source{}, config: f.config, interleaved: f.class == "llama"}
	all.names, _ = f.config.Names()
	for _, name := range c.Names() {
		if states.MatchString(name) {
			continue
		}
		v, bare := view{name: name, of: c.Tensor(name)}, strings.TrimPrefix(name, "model.")
		v.shape = v.of.Shape
		if !all.titan(bare, v) && !all.megatron(bare, v) {
			all.add(name, v.source())
		}
	}
	if all.twice != nil {
		return nil, errors.Join(all.twice...)
	}
	if _, ok := all.where[all.names.Embedding+".weight"]; !ok {
		return nil, fmt.Errorf("given the tensors %s, want tok_embeddings.weight and the others of TorchTitan, or embedding.word_embeddings.weight and the others of Megatron",
			short([]byte(strconv.Quote(strings.Join(c.Names(), " ")))))
	}
	return all.where, nil
}

// view is a tensor, or the part of one that begins with an element.
type view struct {
	name  string
	of    *torchfile.Tensor
	first int
	shape tensor.Shape
}

// sub returns the i-th part along the first dimension.
func (v view) sub(i int) view {
	v.shape = v.shape[1:]
	v.first += i * v.shape.NumElements()
	return v
}

// rows returns rows of a matrix or elements of a vector: row says which is the i-th one of n.
func (v view) rows(n int, row func(i int) int) source {
	shape := append(tensor.Shape{n}, v.shape[1:]...)
	width := shape[1:].NumElements()
	return source{v.name, v.of.DType, shape, func() (*io.SectionReader, error) {
		return v.of.Select(n, width, func(i int) int { return v.first + row(i)*width }), nil
	}}
}

// part returns n rows in order.
func (v view) part(first, n int) source { return v.rows(n, func(i int) int { return first + i }) }

// source returns all elements.
func (v view) source() source {
	return source{v.name, v.of.DType, v.shape, func() (*io.SectionReader, error) {
		return v.of.Select(1, v.shape.NumElements(), func(int) int { return v.first }), nil
	}}
}

// names gives tensors the names of Hugging Face's class.
type names struct {
	names       architecture.Names
	where       map[string]source
	config      model.Config
	interleaved bool // the two numbers of a pair that TorchTitan rotates lie side by side
	twice       []error
}

func (n *names) add(name string, s source) {
	if other, ok := n.where[name]; ok {
		n.twice = append(n.twice, fmt.Errorf("given both %q and %q, want one tensor for %s", other.name, s.name, name))
	}
	n.where[name] = s
}

var titanLayer = regexp.MustCompile(`^layers\.(\d+)\.(.+?)(?:\.(weight|bias))?$`)

// titan adds a tensor of TorchTitan and reports whether the name is one of its.
func (n *names) titan(name string, v view) bool {
	top := map[string]string{"tok_embeddings.weight": n.names.Embedding, "norm.weight": n.names.FinalNorm, "output.weight": n.names.Head, "lm_head.weight": n.names.Head}
	if to, ok := top[name]; ok {
		n.add(to+".weight", v.source())
		return true
	}
	found := titanLayer.FindStringSubmatch(name)
	if found == nil {
		return false
	}
	layer, part, kind := n.names.Layers+found[1]+".", strings.Replace(found[2], ".qkv_linear.", ".", 1), "."+found[3]
	attention, mlp := layer+n.names.Attention, layer+n.names.MLP
	to, ok := map[string]string{
		"attention.wq": attention + n.names.Q, "attention.wk": attention + n.names.K, "attention.wv": attention + n.names.V,
		"attention.wo": attention + n.names.Out, "attention.q_norm": attention + n.names.QNorm, "attention.k_norm": attention + n.names.KNorm,
		"feed_forward.w1": mlp + n.names.Gate, "feed_forward.w3": mlp + n.names.Up, "feed_forward.w2": mlp + n.names.Down,
		"attention_norm": layer + n.names.InputNorm, "ffn_norm": layer + n.names.PostNorm, "moe.router.gate": layer + n.names.Router,
	}[part]
	expert := map[string]string{"moe.experts.w1": n.names.ExpertGate, "moe.experts.w3": n.names.ExpertUp, "moe.experts.w2": n.names.ExpertDown}[part]
	switch {
	case ok && n.interleaved && (part == "attention.wq" || part == "attention.wk") && len(v.shape) > 0:
		n.add(to+kind, n.halves(v))
	case ok:
		n.add(to+kind, v.source())
	case expert != "" && len(v.shape) == 3:
		for e := range v.shape[0] {
			n.add(layer+n.names.Experts+strconv.Itoa(e)+"."+expert+".weight", v.sub(e).source())
		}
	default:
		return false
	}
	return true
}

// halves returns a projection of queries or keys with the first numbers of all pairs of a head
// before the second ones, as transformers has them.
func (n *names) halves(v view) source {
	head := n.config.HeadDim()
	half := head / 2
	return v.rows(v.shape[0], func(i int) int {
		at := i % head
		return i - at + at%half*2 + at/half
	})
}

// maxPadding is the most rows that make_vocab_size_divisible_by adds to a vocabulary, for 64 ranks.
const maxPadding = 128 * 64

var megatronLayer = regexp.MustCompile(`^decoder\.layers\.(?:(\d+)\.)?(.+?)[._](weight|bias|weight_w|weight_v)$`)

// megatron adds a tensor of Megatron and reports whether the name is one of its. A name without the
// number of a layer is that of one tensor for all layers.
func (n *names) megatron(name string, v view) bool {
	if to, ok := map[string]string{"embedding.word_embeddings.weight": n.names.Embedding, "output_layer.weight": n.names.Head}[name]; ok {
		if len(v.shape) == 2 && v.shape[0] > n.config.VocabSize && v.shape[0]-n.config.VocabSize < maxPadding {
			n.add(to+".weight", v.part(0, n.config.VocabSize)) // without what make_vocab_size_divisible_by adds
		} else {
			n.add(to+".weight", v.source())
		}
		return true
	}
	if name == "decoder.final_layernorm.weight" {
		n.add(n.names.FinalNorm+".weight", v.source())
		return true
	}
	found := megatronLayer.FindStringSubmatch(name)
	switch {
	case found == nil:
		return false
	case found[1] != "":
		return n.megatronPart(n.names.Layers+found[1]+".", found[2], found[3], v)
	case len(v.shape) < 2:
		return false
	}
	known := v.shape[0] > 0
	for i := range v.shape[0] {
		known = known && n.megatronPart(n.names.Layers+strconv.Itoa(i)+".", found[2], found[3], v.sub(i))
	}
	return known
}

// megatronPart adds a tensor of one layer.
func (n *names) megatronPart(layer, part, kind string, v view) bool {
	attention, mlp := layer+n.names.Attention, layer+n.names.MLP
	to, ok := map[string]string{
		"self_attention.linear_proj": attention + n.names.Out, "self_attention.q_layernorm": attention + n.names.QNorm, "self_attention.k_layernorm": attention + n.names.KNorm,
		"self_attention.linear_qkv.layer_norm": layer + n.names.InputNorm, "input_layernorm": layer + n.names.InputNorm,
		"mlp.linear_fc1.layer_norm": layer + n.names.PostNorm, "pre_mlp_layernorm": layer + n.names.PostNorm,
		"mlp.linear_fc2": mlp + n.names.Down, "mlp.router": layer + n.names.Router,
	}[part]
	switch {
	case ok && (kind == "weight" || kind == "bias"):
		n.add(to+"."+kind, v.source())
	case part == "self_attention.linear_qkv" && len(v.shape) > 0:
		n.queries(attention, kind, v)
	case part == "mlp.linear_fc1" && len(v.shape) > 0:
		n.gates(mlp+n.names.Gate, mlp+n.names.Up, kind, v)
	case strings.HasPrefix(part, "mlp.experts.experts.linear_fc") && len(v.shape) == 3:
		for e := range v.shape[0] {
			expert := layer + n.names.Experts + strconv.Itoa(e) + "."
			if part == "mlp.experts.experts.linear_fc1" {
				n.gates(expert+n.names.ExpertGate, expert+n.names.ExpertUp, kind, v.sub(e))
			} else {
				n.add(expert+n.names.ExpertDown+"."+kind, v.sub(e).source())
			}
		}
	default:
		return false
	}
	return true
}

// queries adds the projections of queries, keys and values, which lie by group: the queries of a
// group, its keys, its values.
func (n *names) queries(attention, kind string, v view) {
	head, groups := n.config.HeadDim(), n.config.Groups()
	each := n.config.NumAttentionHeads / groups
	for name, part := range map[string]struct{ heads, first int }{n.names.Q: {each, 0}, n.names.K: {1, each}, n.names.V: {1, each + 1}} {
		rows := part.heads * head
		if v.shape[0] != groups*(each+2)*head {
			rows = 0 // of another architecture; the shape is refused
		}
		n.add(attention+name+"."+kind, v.rows(groups*rows, func(i int) int {
			return (i/rows*(each+2)+part.first)*head + i%rows
		}))
	}
}

// gates adds the two projections of a gated MLP: one tensor with the gates first, or one each.
func (n *names) gates(gate, up, kind string, v view) {
	switch kind {
	case "weight_w":
		n.add(gate+".weight", v.source())
	case "weight_v":
		n.add(up+".weight", v.source())
	default:
		half := v.shape[0] / 2
		n.add(gate+"."+kind, v.part(0, half))
		n.add(up+"."+kind, v.part(half, v.shape[0]-half))
	}
}
