package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// Load fills the tensors of a model from a file that has exactly these names, dtypes and shapes.
// All of them are compared before the first is written; a difference gives a *ConfigError and
// leaves every tensor as it was.
func Load(f *safetensors.File, into map[string]*tensor.Tensor) error {
	want := make(map[string]safetensors.Info, len(into))
	for name, t := range into {
		if t == nil {
			return fmt.Errorf("checkpoint: load tensor %s: given a nil tensor", name)
		}
		want[name] = safetensors.Info{DType: t.DType(), Shape: t.Shape()}
	}
	if err := Compare(f, want); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if err := f.ReadInto(name, into[name]); err != nil {
			return fmt.Errorf("load the checkpoint: %w", err)
		}
	}
	return nil
}

// Compare returns a *ConfigError if a file does not have exactly these names, dtypes and shapes.
func Compare(f *safetensors.File, want map[string]safetensors.Info) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		err := f.Check(name, want[name].DType, want[name].Shape)
		if mismatch, ok := errors.AsType[*safetensors.MismatchError](err); ok {
			info, present := f.Info(name)
			e := &ConfigError{File: f.Name(), Tensor: name, Want: mismatch.Want, Hint: hint(name, present)}
			if present {
				e.Got, e.Want = difference(info, want[name])
			}
			return e
		}
	}
	for _, name := range f.Names() {
		if _, wanted := want[name]; !wanted {
			info, _ := f.Info(name)
			return &ConfigError{File: f.Name(), Tensor: name, Got: info.String(), Hint: hint(name, false)}
		}
	}
	return nil
}

// difference describes both sides by what differs.
func difference(have, want safetensors.Info) (got, wanted string) {
	switch {
	case have.DType == want.DType:
		return fmt.Sprintf("shape %v", have.Shape), want.Shape.String()
	case have.Shape.Equal(want.Shape):
		return fmt.Sprintf("dtype %v", have.DType), want.DType.String()
	default:
		return have.String(), want.String()
	}
}

// hint names the parameters that decide whether a tensor of a Llama model exists
// and, when both sides have it, its shape.
func hint(name string, present bool) string {
	if !present {
		switch {
		case strings.Contains(name, "lm_head."):
			return "untie_embeddings_and_output_weights"
		case strings.Contains(name, "layers."):
			return "num_layers"
		default:
			return ""
		}
	}
	for _, h := range []struct{ part, keys string }{
		{"embed_tokens.", "vocab_size, hidden_size"},
		{"lm_head.", "vocab_size, hidden_size"},
		{".q_proj.", "hidden_size, num_attention_heads, kv_channels"},
		{".o_proj.", "hidden_size, num_attention_heads, kv_channels"},
		{".k_proj.", "hidden_size, num_query_groups, num_attention_heads"},
		{".v_proj.", "hidden_size, num_query_groups, num_attention_heads"},
		{".mlp.", "hidden_size, ffn_hidden_size"},
		{"norm.", "hidden_size"},
	} {
		if strings.Contains(name, h.part) {
			return h.keys
		}
	}
	return ""
}
