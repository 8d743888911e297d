package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/tensor"
)

// GGUFSettings say how GGUF writes a file.
type GGUFSettings struct {
	Type Type   // of matrices; vectors, routers and tables of positions are f32
	Name string // of the model, for people
}

// GGUFReport says what is in a file.
type GGUFReport struct {
	Architecture string
	Wider        []string // matrices in f16 whose rows are no multiple of the blocks of q8_0
}

// GGUF writes a model as a file that llama.cpp loads.
func GGUF(path string, m *Model, s GGUFSettings) (GGUFReport, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return GGUFReport{}, fmt.Errorf("export: %s exists: choose another name", path)
	}
	g := ggufWriter{m: m, c: m.Config.Resolved(), GGUFSettings: s}
	if err := g.convert(); err != nil {
		return GGUFReport{}, fmt.Errorf("export: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return GGUFReport{}, fmt.Errorf("export: %w", err)
	}
	err := durable.WriteFile(path, func(w io.Writer) error { return Write(w, g.values, g.tensors) })
	if err != nil {
		return GGUFReport{}, fmt.Errorf("export: %w", err)
	}
	return g.report, nil
}

// ggufWriter gathers what a file holds.
type ggufWriter struct {
	GGUFSettings
	m       *Model
	c       model.Config // with the values that zeros stand for
	report  GGUFReport
	values  []Value
	tensors []Tensor
}

// architectures are the names of llama.cpp for the classes of transformers.
var architectures = map[string]string{
	"llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3_moe": "qwen3moe", "gpt2": "gpt2",
}

func (g *ggufWriter) convert() error {
	kind, _ := g.m.JSON["model_type"].(string)
	arch, ok := architectures[kind]
	if !ok {
		return fmt.Errorf("llama.cpp computes no model of the type %q", kind)
	}
	if act := g.c.Activation; act != model.SwiGLU && act != model.GELU {
		return fmt.Errorf("activation_func: llama.cpp computes models of the type %q with %s: given %s", kind, map[bool]string{true: string(model.SwiGLU), false: string(model.GELU)}[g.c.Gated()], act)
	}
	if p := g.c.PositionEmbedding; p != model.Rope && p != model.LearnedAbsolute {
		return fmt.Errorf("rope_scaling: positions of type %s are not exported to GGUF: export the folder with --format hf and convert that", p)
	}
	if g.c.AttentionBias && strings.HasPrefix(arch, "qwen3") {
		return fmt.Errorf("attention_bias: llama.cpp computes models of the type %q without biases: given true", kind)
	}
	if g.c.WindowLayers != nil {
		return fmt.Errorf("layer_types: llama.cpp computes models of the type %q without windows in some layers", kind)
	}
	if left := g.c.Window[0]; left >= 0 && left+1 < g.c.MaxPositionEmbeddings {
		return fmt.Errorf("window_size: llama.cpp computes models of the type %q without a window: given %d tokens of %d positions", kind, left+1, g.c.MaxPositionEmbeddings)
	}
	if arch == "qwen3moe" && g.c.PreSoftmax {
		return errors.New("norm_topk_prob: llama.cpp weights the experts of a token so that they add up to 1: given false")
	}
	g.report.Architecture = arch
	g.describe(arch)
	if err := g.vocabulary(); err != nil {
		return err
	}
	if g.c.UseScaling {
		g.ropeFactors()
	}
	for _, t := range g.m.Tensors {
		if err := g.add(t, arch); err != nil {
			return err
		}
	}
	return g.joinExperts()
}

func (g *ggufWriter) set(key string, value any) {
	g.values = append(g.values, Value{Key: key, Value: value})
}

// describe writes the architecture.
func (g *ggufWriter) describe(arch string) {
	c := g.c
	number := func(key string, n int) { g.set(arch+"."+key, uint32(n)) }
	g.set("general.architecture", arch)
	g.set("general.name", g.Name)
	g.set("general.quantization_version", uint32(2))
	g.set("general.file_type", map[Type]uint32{F32: 0, F16: 1, Q8_0: 7, BF16: 32}[g.Type])
	number("vocab_size", c.VocabSize)
	number("context_length", c.MaxPositionEmbeddings)
	number("embedding_length", c.HiddenSize)
	number("block_count", c.NumLayers)
	number("attention.head_count", c.NumAttentionHeads)
	if arch == "gpt2" {
		number("feed_forward_length", c.FFNHiddenSize)
		g.set(arch+".attention.layer_norm_epsilon", float32(c.NormEpsilon))
		return
	}
	if arch == "qwen3moe" {
		number("feed_forward_length", c.FFNHiddenSize)
		number("expert_feed_forward_length", c.MoEFFNHiddenSize)
	} else {
		number("feed_forward_length", c.MoEFFNHiddenSize)
	}
	number("attention.head_count_kv", c.NumQueryGroups)
	number("attention.key_length", c.KVChannels)
	number("attention.value_length", c.KVChannels)
	number("rope.dimension_count", c.KVChannels)
	g.set(arch+".attention.layer_norm_rms_epsilon", float32(c.NormEpsilon))
	g.set(arch+".rope.freq_base", float32(c.RotaryBase))
	if c.Interpolation != 1 {
		g.set(arch+".rope.scaling.type", "linear")
		g.set(arch+".rope.scaling.factor", float32(c.Interpolation))
	}
	if c.NumExperts > 0 {
		number("expert_count", c.NumExperts)
		number("expert_used_count", c.RouterTopk)
	}
}

// ropeFactors adds the numbers by which llama.cpp divides the frequencies of rotary positions.
func (g *ggufWriter) ropeFactors() {
	d := g.c.KVChannels
	plain := g.c
	plain.UseScaling = false
	var factors []float32
	for i := range d / 2 {
		factors = append(factors, float32(plain.Frequency(i, g.c.SeqLength)/g.c.Frequency(i, g.c.SeqLength)))
	}
	g.tensors = append(g.tensors, Tensor{
		Name: "rope_freqs.weight", Type: F32, Shape: tensor.Shape{d / 2},
		Write: func(w io.Writer) error {
			data, _ := weights.Append(nil, tensor.F32, factors)
			_, err := w.Write(data)
			return err
		},
	})
}

// ggufNames are the names of weights, after "blk.N." for those of layers.
var ggufNames = map[string]string{
	"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "block_sparse_moe.gate": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp",

	"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
	"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}

// add adds a weight under the name that llama.cpp has for it.
func (g *ggufWriter) add(t weights.Tensor, arch string) error {
	if strings.Contains(t.Name, ".experts.") {
		return nil // joinExperts adds them
	}
	base, suffix, _ := cutLast(t.Name, ".")
	prefix := ""
	for _, layers := range []string{"model.layers.", "transformer.h."} {
		if rest, ok := strings.CutPrefix(base, layers); ok {
			number, part, _ := strings.Cut(rest, ".")
			prefix, base = "blk."+number+".", part
		}
	}
	name, ok := ggufNames[base]
	if !ok {
		return fmt.Errorf("tensor %q: llama.cpp has no name for it", t.Name)
	}
	p := plan{tensors: []weights.Tensor{t}, shape: t.Shape, to: g.typeOf(t, name)}
	switch {
	case arch == "gpt2" && len(t.Shape) == 2 && prefix != "":
		p.transposed, p.shape = true, tensor.Shape{t.Shape[1], t.Shape[0]}
	case arch == "llama" && (name == "attn_q" || name == "attn_k"):
		p.headDim = g.c.KVChannels
	}
	return g.plan(prefix+name+"."+suffix, p)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// typeOf returns the type in which a weight is written.
func (g *ggufWriter) typeOf(t weights.Tensor, name string) Type {
	if len(t.Shape) == 1 || name == "position_embd" || name == "ffn_gate_inp" {
		return F32
	}
	return g.Type
}

// joinExperts adds the matrices of the experts of each layer, one after the other.
func (g *ggufWriter) joinExperts() error {
	if g.c.NumExperts == 0 {
		return nil
	}
	byName := map[string]weights.Tensor{}
	for _, t := range g.m.Tensors {
		byName[t.Name] = t
	}
	names, _ := g.c.Names()
	for layer := range g.c.NumLayers {
		for _, part := range []struct{ name, joined string }{
			{names.ExpertGate, "ffn_gate_exps"}, {names.ExpertUp, "ffn_up_exps"}, {names.ExpertDown, "ffn_down_exps"},
		} {
			p := plan{to: g.Type}
			for e := range g.c.NumExperts {
				t := byName[fmt.Sprintf("%s%d.%s%d.%s.weight", names.Layers, layer, names.Experts, e, part.name)]
				p.tensors = append(p.tensors, t)
			}
			one := p.tensors[0].Shape
			p.shape = tensor.Shape{g.c.NumExperts, one[0], one[1]}
			if err := g.plan("blk."+strconv.Itoa(layer)+"."+part.joined+".weight", p); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan is how a tensor of a file is made of weights.
type plan struct {
	tensors    []weights.Tensor
	shape      tensor.Shape
	to         Type
	transposed bool
	headDim    int // of heads whose rows change places; 0 for rows that stay
}

func (g *ggufWriter) plan(name string, p plan) error {
	if p.to == Q8_0 && p.shape.Cols()%BlockSize != 0 {
		g.report.Wider = append(g.report.Wider, name)
		p.to = F16
	}
	g.tensors = append(g.tensors, Tensor{Name: name, Type: p.to, Shape: p.shape, Write: p.write})
	return nil
}

// write writes the rows of a tensor. A transposed one is read whole.
func (p plan) write(w io.Writer) error {
	var out []byte
	for _, t := range p.tensors {
		cols := p.shape.Cols()
		rows := t.Shape.NumElements() / cols
		if p.headDim > 0 && len(p.shape) == 1 {
			rows, cols = cols, 1 // the elements of a bias change places as the rows of its matrix do
		}
		var whole []float32
		if p.transposed {
			whole = make([]float32, t.Shape.NumElements())
			if err := t.ReadFloat32(whole, 0); err != nil {
				return err
			}
		}
		row := make([]float32, cols)
		for r := range rows {
			var err error
			if p.transposed {
				for c := range row {
					row[c] = whole[c*rows+r]
				}
			} else if err = t.ReadFloat32(row, int64(p.source(r))*int64(cols)); err != nil {
				return err
			}
			if out, err = appendRow(out[:0], p.to, row); err != nil {
				return err
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// source returns the row that becomes row r. llama.cpp rotates neighbours of a head, where
// transformers rotates its halves against each other.
func (p plan) source(r int) int {
	if p.headDim == 0 {
		return r
	}
	head, i := r/p.headDim, r%p.headDim
	return head*p.headDim + i%2*(p.headDim/2) + i/2
}

func appendRow(dst []byte, to Type, row []float32) ([]byte, error) {
	switch to {
	case Q8_0:
		return AppendQ8(dst, row)
	case F16:
		return weights.Append(dst, tensor.F16, row)
	case BF16:
		return weights.Append(dst, tensor.BF16, row)
	default:
		return weights.Append(dst, tensor.F32, row)
	}
}
