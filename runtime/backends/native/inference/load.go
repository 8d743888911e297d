package inference

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/runtime/backends/native/weights"
	"github.com/primus-fl/primus/runtime/tokenizer"
)

// Loaded is a model with its tokenizer.
type Loaded struct {
	Model     *model.Model
	Tokenizer tokenizer.Tokenizer
	Path      string // the directory of the weights
}

// Load reads a model without gradients from a folder that weights.Open opens. The caller closes the
// Model.
func Load(dir string, backend device.Backend) (_ *Loaded, err error) {
	folder, err := weights.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	l := &Loaded{Path: folder.Path()}
	if l.Tokenizer, err = folder.Tokenizer(); err != nil {
		return nil, err
	}
	cfg := folder.Config()
	if n := l.Tokenizer.VocabSize(); n > cfg.VocabSize {
		return nil, fmt.Errorf("%s: the tokenizer has %d tokens and the model %d: the files are not of one model", l.Path, n, cfg.VocabSize)
	}
	if l.Model, err = model.NewFrozen(cfg, backend); err != nil {
		return nil, err
	}
	if err := folder.Load(l.Model); err != nil {
		return nil, errors.Join(err, l.Model.Close())
	}
	return l, nil
}

// EOS returns the tokens that end a text.
func (l *Loaded) EOS() []int32 {
	if f, ok := l.Tokenizer.(*tokenizer.File); ok && f.EOS() >= 0 {
		return []int32{f.EOS()}
	}
	return nil
}

// Prompt returns the tokens of a text, with those that the tokenizer puts before it.
func Prompt(tok tokenizer.Tokenizer, text string) []int32 {
	if f, ok := tok.(*tokenizer.File); ok {
		return f.EncodePrompt(nil, []byte(text))
	}
	return tok.Encode(nil, []byte(text))
}
