package inference

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/tensor"
)

// Loaded is a model with its tokenizer.
type Loaded struct {
	Model     *model.Model
	Tokenizer tokenizer.Tokenizer
	Path      string  // the directory of the weights
	EOS       []int32 // tokens that end a text

	// ChatTemplate is the file with the template of conversations when the tokenizer, which is that of
	// bytes, has no files of its own; "" otherwise.
	ChatTemplate string
}

// LoadSettings say which weights are read, and as what.
type LoadSettings struct {
	weights.Settings

	// DType is the type of matrices, activations and the cache: f32, bf16 or f16. Unspecified means
	// that of the folder.
	DType tensor.DType
}

// Load reads a model without gradients from a folder that weights.Open opens into the memory of
// backend, where it computes. The caller closes the Model.
func Load(ctx context.Context, dir string, backend device.Backend, s LoadSettings) (_ *Loaded, err error) {
	folder, err := weights.Open(ctx, dir, s.Settings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	l := &Loaded{Path: folder.Path()}
	if l.Tokenizer, err = folder.Tokenizer(); err != nil {
		return nil, err
	}
	if _, ok := l.Tokenizer.(tokenizer.Byte); ok {
		if file := filepath.Join(l.Path, tokenizer.TemplateName); exists(file) {
			l.ChatTemplate = file
		}
	}
	if l.EOS, err = readEOS(l.Path, l.Tokenizer); err != nil {
		return nil, err
	}
	cfg, dtype := folder.Config(), cmp.Or(s.DType, folder.DType())
	cfg.BF16, cfg.FP16 = dtype == tensor.BF16, dtype == tensor.F16
	if n := l.Tokenizer.VocabSize(); n > cfg.VocabSize {
		return nil, fmt.Errorf("%s: the tokenizer has %d tokens and the model %d: the files are not of one model", l.Path, n, cfg.VocabSize)
	}
	if err := checkWeights(cfg, backend); err != nil {
		return nil, err
	}
	if l.Model, err = model.NewFrozen(cfg, backend); err != nil {
		return nil, err
	}
	if err := folder.Load(l.Model); err != nil {
		if _, ok := errors.AsType[*weights.NonFiniteError](err); ok {
			err = fmt.Errorf("%w: repair them, or allow them with --allow-nonfinite-weights", err)
		}
		return nil, errors.Join(err, l.Model.Close())
	}
	return l, nil
}

func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// generationConfig is the file of Hugging Face that says how a model generates.
const generationConfig = "generation_config.json"

// readEOS returns the tokens that end a text: those of the tokenizer and of generation_config.json.
func readEOS(dir string, tok tokenizer.Tokenizer) ([]int32, error) {
	var all []int32
	if f, ok := tok.(*tokenizer.File); ok && f.EOS() >= 0 {
		all = append(all, f.EOS())
	}
	name := filepath.Join(dir, generationConfig)
	text, err := durable.ReadRegular(name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read how the model generates: %w", durable.Explain(err))
	}
	var config struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	err = json.Unmarshal(text, &config)
	var more []int32
	if err == nil && config.EOS != nil {
		var one *int32
		if err = json.Unmarshal(config.EOS, &more); err != nil {
			if err = json.Unmarshal(config.EOS, &one); one != nil {
				more = []int32{*one}
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, id := range more {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all, nil
}

// Prompt returns the tokens of a text, with those that the tokenizer puts before it.
func Prompt(tok tokenizer.Tokenizer, text string) []int32 {
	if f, ok := tok.(*tokenizer.File); ok {
		return f.EncodePrompt(nil, []byte(text))
	}
	return tok.Encode(nil, []byte(text))
}
