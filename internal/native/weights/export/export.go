package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// Model is what is exported.
type Model struct {
	Config    model.Config
	JSON      map[string]any   // config.json, of which keys that Config does not know are kept
	Tensors   []weights.Tensor // in the order of Model.Tensors of package model
	Tokenizer tokenizer.Tokenizer

	// Generation is generation_config.json, nil without one.
	Generation []byte
}

// FromFolder returns the model in a folder, which stays open as long as the Model is used.
func FromFolder(f *weights.Folder) (*Model, error) {
	m := &Model{Config: f.Config()}
	decoder := json.NewDecoder(bytes.NewReader(f.ConfigJSON()))
	decoder.UseNumber() // numbers are written as they were read
	err := decoder.Decode(&m.JSON)
	if err != nil {
		return nil, fmt.Errorf("export: %s: %w", configName, err)
	}
	if f.Joined() {
		m.JSON = m.separate()
	}
	if m.Tensors, err = f.Tensors(); err != nil {
		return nil, err
	}
	if m.Tokenizer, err = f.Tokenizer(); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	m.Generation, err = durable.ReadRegular(filepath.Join(f.Path(), generationName), 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("export: %w", durable.Explain(err))
	}
	if n := m.Tokenizer.VocabSize(); n > m.Config.VocabSize {
		return nil, fmt.Errorf("export: the tokenizer has %d tokens and the model %d: the files are not of one model", n, m.Config.VocabSize)
	}
	return m, nil
}

// separate returns a config.json of the class that has each matrix by itself.
func (m *Model) separate() map[string]any {
	config := m.Config.HFConfig()
	for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		config[key] = m.JSON[key]
	}
	return config
}

// newDir makes a directory whose files write creates: under a temporary name first, so that it
// appears whole. A directory that exists must be empty.
func newDir(dir string, write func(temp string) error) (err error) {
	dir = filepath.Clean(dir)
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("export: %s exists and is not empty: choose another directory", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("export: %w", durable.Explain(err))
	}
	if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	temp := durable.TempName(dir)
	if err := os.Mkdir(temp, 0o755); err != nil {
		return fmt.Errorf("export: %w", durable.Explain(err))
	}
	err = write(temp)
	if err == nil {
		err = durable.SyncDir(temp)
	}
	if err == nil {
		err = durable.ReplaceDir(temp, dir)
	}
	if err != nil {
		return fmt.Errorf("export: %w", errors.Join(err, os.RemoveAll(temp)))
	}
	return nil
}

func writeFile(path string, data []byte) error {
	return durable.Create(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func writeJSON(path string, v any) error {
	text, err := marshal(filepath.Base(path), v)
	if err != nil {
		return err
	}
	return writeFile(path, text)
}

// marshal returns the text of a JSON file.
func marshal(name string, v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return append(text, '\n'), nil
}
