package export

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/tensor"
)

// The files of a folder.
const (
	configName     = "config.json"
	generationName = "generation_config.json"
	weightsName    = "model.safetensors"
	indexName      = "model.safetensors.index.json"

	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
)

// HFSettings say how HF writes a folder.
type HFSettings struct {
	DType    tensor.DType // of the weights: f32, bf16 or f16; Unspecified keeps that of each weight
	MaxShard int64        // bytes of the weights in a file, at most; 0 means 5 GB
}

// HF writes a model as a folder that transformers loads: config.json, generation_config.json, the
// files of the tokenizer, and the weights in one or several safetensors files.
func HF(dir string, m *Model, s HFSettings) error {
	if kind := m.JSON["model_type"]; kind == "primus" {
		return fmt.Errorf("export: no class of transformers computes a model of this architecture: normalization %v, position_embedding_type %v, activation_func %v, biases or norms of heads are not together in any",
			m.JSON["normalization"], m.JSON["position_embedding_type"], m.JSON["activation_func"])
	}
	return newDir(dir, func(temp string) error {
		dtype, err := writeShards(temp, m.Tensors, s)
		if err != nil {
			return err
		}
		if err := writeJSON(filepath.Join(temp, configName), m.config(dtype)); err != nil {
			return err
		}
		if err := m.writeGeneration(filepath.Join(temp, generationName)); err != nil {
			return err
		}
		return m.writeTokenizer(temp)
	})
}

// config returns config.json for weights of a type.
func (m *Model) config(dtype tensor.DType) map[string]any {
	config := maps.Clone(m.JSON)
	delete(config, "torch_dtype")
	delete(config, "dtype")
	if name := architecture.HFDType(dtype); name != "" {
		config["torch_dtype"] = name
	}
	for key, id := range m.special() {
		if config[key] == nil {
			config[key] = id
		}
	}
	return config
}

// special returns the ids of special tokens that the tokenizer has.
func (m *Model) special() map[string]int32 {
	f, ok := m.Tokenizer.(*tokenizer.File)
	if !ok {
		return nil
	}
	ids := map[string]int32{"bos_token_id": f.BOS(), "eos_token_id": f.EOS(), "pad_token_id": f.PAD()}
	maps.DeleteFunc(ids, func(_ string, id int32) bool { return id < 0 })
	return ids
}

func (m *Model) writeGeneration(path string) error {
	if m.Generation != nil {
		return writeFile(path, m.Generation)
	}
	config := map[string]any{"_from_model_config": true}
	for key, id := range m.special() {
		config[key] = id
	}
	return writeJSON(path, config)
}

func (m *Model) writeTokenizer(dir string) error {
	files, err := m.tokenizerFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	return nil
}

// tokenizerFiles returns the files of the tokenizer, with one that makes transformers read
// tokenizer.json whatever the class of the model is.
func (m *Model) tokenizerFiles() ([]tokenizer.Raw, error) {
	config := map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false, "model_max_length": m.Config.Resolved().MaxPositionEmbeddings,
	}
	var files []tokenizer.Raw
	if t, ok := m.Tokenizer.(*tokenizer.File); ok {
		files = t.Raw()
		has := func(name string) bool {
			return slices.ContainsFunc(files, func(r tokenizer.Raw) bool { return r.Name == name })
		}
		if !has(tokenizerName) || has(tokenizerConfigName) {
			return files, nil
		}
		for id, of := range m.special() {
			if token, _ := t.Token(of); token != "" {
				config[strings.TrimSuffix(id, "_id")] = token
			}
		}
	} else {
		text, err := byteTokenizer()
		if err != nil {
			return nil, err
		}
		files = []tokenizer.Raw{{Name: tokenizerName, Data: text}}
	}
	text, err := marshal(tokenizerConfigName, config)
	return append(files, tokenizer.Raw{Name: tokenizerConfigName, Data: text}), err
}

// writeShards writes the weights, with an index if they take several files. It returns the type
// that all matrices have, Unspecified if they have several.
func writeShards(dir string, tensors []weights.Tensor, s HFSettings) (tensor.DType, error) {
	most := s.MaxShard
	if most == 0 {
		most = 5_000_000_000
	}
	dtype, size := tensor.Unspecified, int64(0)
	var total int64
	var shards [][]safetensors.Entry
	for i, t := range tensors {
		to := s.DType
		if to == tensor.Unspecified {
			to = t.DType
		}
		e, err := safetensors.Stream(t.Name, to, t.Shape, func(w io.Writer) error { return t.Convert(w, to) })
		if err != nil {
			return 0, err
		}
		if i == 0 || size+e.Size() > most {
			shards, size = append(shards, nil), 0
		}
		shards[len(shards)-1] = append(shards[len(shards)-1], e)
		size, total = size+e.Size(), total+e.Size()
		if i == 0 {
			dtype = to
		} else if dtype != to {
			dtype = tensor.Unspecified
		}
	}
	metadata := map[string]string{"format": "pt"}
	if len(shards) == 1 {
		return dtype, safetensors.WriteFile(filepath.Join(dir, weightsName), shards[0], metadata)
	}
	index := map[string]string{}
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		if err := safetensors.WriteFile(filepath.Join(dir, name), shard, metadata); err != nil {
			return 0, err
		}
		for _, e := range shard {
			index[e.Name()] = name
		}
	}
	return dtype, writeJSON(filepath.Join(dir, indexName), map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": index})
}
