package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
)

// ignored matches tensors of transformers that hold no weights: masks and frequencies.
var ignored = regexp.MustCompile(`(\.rotary_emb\.inv_freq|(^|\.)h\.\d+\.attn\.(bias|masked_bias))$`)

// headName is the output layer, which a folder may have although it shares the weights of the
// embedding.
const headName = "lm_head.weight"

// Load fills a model of the architecture of the folder, or the part of one that a rank has. Every
// name, dtype and shape is compared before the first weight is written. Elements are converted to
// the types of the model. Weights that are NaN or infinite are a *NonFiniteError, unless Found of
// the Settings takes it.
func (f *Folder) Load(m *model.Model) error {
	if m.Divided() {
		return f.loadPart(m)
	}
	all, err := f.tensors(m)
	if err != nil {
		return err
	}
	bad := &NonFiniteError{Path: f.path}
	for i, n := range m.Tensors() {
		if err := all[i].read(n.Tensor); err != nil {
			return fmt.Errorf("weights: %s: %w", f.path, err)
		}
		counted, err := Count(n.Name, n.Tensor)
		if err != nil {
			return fmt.Errorf("weights: %s: %w", f.path, err)
		}
		bad.add(counted)
	}
	return f.judge(bad)
}

// judge returns the error of weights that are not finite, if they are not allowed.
func (f *Folder) judge(bad *NonFiniteError) error {
	if len(bad.Tensors) > 0 && f.Found != nil {
		f.Found(bad)
		return nil
	}
	return bad.refused()
}

// loadPart is Load for the part of a model that a rank has, which is f32.
func (f *Folder) loadPart(m *model.Model) error {
	whole, err := model.Outline(m.Config())
	if err != nil {
		return fmt.Errorf("weights: %s: %w", f.path, err)
	}
	all, err := f.tensors(whole)
	if err != nil {
		return err
	}
	sources := map[string]Tensor{}
	for _, t := range all {
		sources[t.Name] = t
	}
	var values []float32
	bad := &NonFiniteError{Path: f.path}
	for _, p := range m.WeightPlaces() {
		n, into := p.Slice.Whole.NumElements(), tensor.Data[float32](p.Param.Value)[p.Lo:p.Hi]
		values = slices.Grow(values[:0], n)[:n]
		if err := sources[p.Name].ReadFloat32(values, 0); err != nil {
			return fmt.Errorf("weights: %s: %w", f.path, err)
		}
		whole, err := tensor.FromSlice(values, n)
		if err != nil {
			return fmt.Errorf("weights: %s: %w", f.path, err)
		}
		counted, err := Count(p.Name, whole)
		if err != nil {
			return err
		}
		bad.add(counted)
		p.Slice.Runs(0, len(into), func(at, to, n int) { copy(into[at:at+n], values[to:to+n]) })
	}
	return f.judge(bad)
}

// Tensors returns the weights in the order of Model.Tensors. They are compared with the
// architecture, as by Load, and are readable until Close.
func (f *Folder) Tensors() ([]Tensor, error) {
	m, err := model.Outline(f.config)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", f.path, err)
	}
	return f.tensors(m)
}

func (f *Folder) tensors(m *model.Model) ([]Tensor, error) {
	sources, err := f.match(m.Tensors())
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", f.path, err)
	}
	var all []Tensor
	for _, n := range m.Tensors() {
		s := sources[n.Name]
		data, err := s.section()
		if err != nil {
			return nil, fmt.Errorf("weights: %w", err)
		}
		all = append(all, Tensor{n.Name, s.dtype, s.shape, data})
	}
	return all, nil
}

// source is where the values of a weight are: a tensor, or some of its rows.
type source struct {
	name    string // of the tensor
	dtype   tensor.DType
	shape   tensor.Shape
	section func() (*io.SectionReader, error) // the elements
}

// cut returns some rows of a matrix.
func (s source) cut(first, rows int) source {
	all, whole := s.section, s.shape[0]
	s.shape = append(tensor.Shape{rows}, s.shape[1:]...)
	s.section = func() (*io.SectionReader, error) {
		data, err := all()
		if err != nil {
			return nil, err
		}
		row := data.Size() / int64(whole)
		return io.NewSectionReader(data, row*int64(first), row*int64(rows)), nil
	}
	return s
}

// bytes returns the elements.
func (s source) bytes() ([]byte, error) {
	data, err := s.section()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(data)
}

// parts returns the weights that a tensor holds, by name: several if the class of the folder joins
// matrices.
func (f *Folder) parts(name string, whole source, d *differences) map[string]source {
	names, _ := f.config.Names()
	type part struct {
		name string
		rows int
	}
	var parts []part
	stem, joined := strings.CutSuffix(name, names.QKV+".weight")
	if joined {
		heads, groups := f.config.NumAttentionHeads*f.config.HeadDim(), f.config.Groups()*f.config.HeadDim()
		parts = []part{{names.Q, heads}, {names.K, groups}, {names.V, groups}}
	} else if stem, joined = strings.CutSuffix(name, names.GateUp+".weight"); joined {
		parts = []part{{names.Gate, f.config.FFNHiddenSize}, {names.Up, f.config.FFNHiddenSize}}
	}
	if !joined || !f.Joined() {
		return map[string]source{name: whole}
	}
	rows := 0
	for _, p := range parts {
		rows += p.rows
	}
	if len(whole.shape) != 2 || whole.shape[0] != rows {
		d.add("tensor %q has the shape %v, want %d rows as %s says", whole.name, whole.shape, rows, configName)
		return nil
	}
	sources, first := map[string]source{}, 0
	for _, p := range parts {
		sources[stem+p.name+".weight"] = whole.cut(first, p.rows)
		first += p.rows
	}
	return sources
}

// match finds the tensor of each weight. It returns every difference.
func (f *Folder) match(weights []model.Named) (map[string]source, error) {
	sources, d := map[string]source{}, &differences{}
	for _, name := range slices.Sorted(maps.Keys(f.where)) {
		if !ignored.MatchString(name) {
			maps.Copy(sources, f.parts(f.prefix()+name, f.where[name], d))
		}
	}
	found := map[string]bool{}
	for _, w := range weights {
		s, ok := sources[w.Name]
		if !ok {
			d.add("no tensor %q, want %v of f32, bf16 or f16", w.Name, w.Tensor.Shape())
			continue
		}
		found[w.Name] = true
		if !s.shape.Equal(w.Tensor.Shape()) {
			d.add("tensor %q has the shape %v, want %v as %s says", s.name, s.shape, w.Tensor.Shape(), configName)
		}
		if !slices.Contains(dtypes(), s.dtype) {
			d.add("tensor %q has the dtype %v, want f32, bf16 or f16", s.name, s.dtype)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if found[name] || name == f.prefix()+headName && f.headIsEmbedding(sources[name], weights[0].Name, sources) {
			continue
		}
		d.add("tensor %q is not part of the model that %s describes", sources[name].name, configName)
	}
	return sources, d.err()
}

// prefix returns what the names of the folder lack: it may hold the decoder alone, without the
// class around it.
func (f *Folder) prefix() string {
	for name, prefix := range map[string]string{"wte.weight": "transformer.", "embed_tokens.weight": "model."} {
		if _, bare := f.where[name]; bare {
			return prefix
		}
	}
	return ""
}

// headIsEmbedding reports whether a folder whose output layer shares the weights of the embedding
// has them twice.
func (f *Folder) headIsEmbedding(head source, embedding string, sources map[string]source) bool {
	e, ok := sources[embedding]
	if f.config.Untie || !ok {
		return false
	}
	a, errA := head.bytes()
	b, errB := e.bytes()
	return errors.Join(errA, errB) == nil && bytes.Equal(a, b)
}

// differences collects differences up to a number that can be read.
type differences struct {
	texts []string
	more  int
}

func (d *differences) add(format string, args ...any) {
	if len(d.texts) == 8 {
		d.more++
		return
	}
	d.texts = append(d.texts, fmt.Sprintf(format, args...))
}

func (d *differences) err() error {
	if d.texts == nil {
		return nil
	}
	text := strings.Join(d.texts, "; ")
	if d.more > 0 {
		text += fmt.Sprintf("; and %d more", d.more)
	}
	return errors.New(text)
}
