package weights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/tensor"
)

// The files of a folder.
const (
	configName  = "config.json"
	weightsName = "model.safetensors"
	indexName   = "model.safetensors.index.json"
	averageName = "model_ema.safetensors"

	checkpointName  = "checkpoint.json" // only checkpoints have it
	checkpointsName = "checkpoints"     // of a run directory
)

// maxJSON is the largest JSON file that is read.
const maxJSON = 64 << 20

// Settings say which weights of a folder are read.
type Settings struct {
	Average bool // the averages that a run with ema_decay saves, in place of the weights

	// Found is called with the error that Load would return for weights that are NaN or infinite. nil
	// lets Load return it.
	Found func(*NonFiniteError) `json:"-"`
}

// Folder is a folder of weights whose description has been read and checked.
type Folder struct {
	Settings
	description
	path  string
	text  []byte // of config.json
	files []io.Closer
	where map[string]source // by the name of a tensor in its file
}

// Open opens a checkpoint, the newest checkpoint of a run directory or of a directory of
// checkpoints, or a folder of Hugging Face. Checkpoints are verified. Reading the weights ends with
// ctx. The caller closes the Folder.
func Open(ctx context.Context, dir string, s Settings) (*Folder, error) {
	path, err := find(ctx, dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Settings: s, path: path}
	if err := f.describe(); err != nil {
		return nil, err
	}
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("weights: %w", err), f.Close())
	}
	return f, nil
}

// describe reads config.json.
func (f *Folder) describe() (err error) {
	name := filepath.Join(f.path, configName)
	if f.text, err = durable.ReadRegular(name, maxJSON); err != nil {
		return fmt.Errorf("weights: read the architecture: %w; want a folder of Hugging Face, with the config.json of the model", durable.Explain(err))
	}
	if f.description, err = parseConfig(f.text); err != nil {
		return fmt.Errorf("weights: %s: %w", name, err)
	}
	return nil
}

// find returns the directory with the weights that dir stands for.
func find(ctx context.Context, dir string) (string, error) {
	const wanted = "want a directory: a checkpoint, a run, or a folder with " + configName + " and " + weightsName
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("weights: %w; %s", durable.Explain(err), wanted)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("weights: given the file %s, %s", dir, wanted)
	}
	if !exists(dir, checkpointName) && exists(dir, configName) {
		return dir, nil
	}
	run, isRun := dir, exists(dir, checkpointsName)
	if isRun {
		dir = filepath.Join(dir, checkpointsName)
	}
	c, err := checkpoint.Open(ctx, dir)
	if errors.Is(err, checkpoint.ErrNone) && isForeign(dir) {
		return "", fmt.Errorf("weights: given %s, a checkpoint of TorchTitan or Megatron, want a folder of weights: make one of it with primus import", dir)
	}
	if errors.Is(err, checkpoint.ErrNone) && isRun {
		return "", fmt.Errorf("weights: the run %s has saved no checkpoint yet: wait for its first one, which comes after save_interval steps, or interrupt it, which saves at once", run)
	}
	if errors.Is(err, checkpoint.ErrNone) {
		return "", fmt.Errorf("weights: %s has neither %s nor checkpoints: want a checkpoint, a run that has saved one, or a folder of Hugging Face", dir, configName)
	}
	if err != nil {
		return "", fmt.Errorf("weights: %w", err)
	}
	return c.Path(), nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// open opens the files of tensors.
func (f *Folder) open(ctx context.Context) error {
	shards, err := f.shards()
	if err != nil {
		return err
	}
	f.where = map[string]source{}
	for _, shard := range shards {
		file, err := safetensors.Open(ctx, filepath.Join(f.path, shard.name))
		if err != nil {
			return err
		}
		f.files = append(f.files, file)
		if shard.tensors == nil {
			shard.tensors = file.Names()
		}
		for _, name := range shard.tensors {
			info, ok := file.Info(name)
			if !ok {
				return fmt.Errorf("%s: no tensor %q, which %s says it has", file.Name(), name, indexName)
			}
			f.where[name] = source{name, info.DType, info.Shape, func() (*io.SectionReader, error) { return file.Section(name) }}
		}
	}
	return nil
}

// Path returns the directory with the weights: that of the checkpoint if a run was opened.
func (f *Folder) Path() string { return f.path }

// Config returns the architecture. The length of sequences is the largest number of positions.
func (f *Folder) Config() model.Config { return f.config }

// DType returns the type of numbers that config.json recommends: that of the weights, or in which a
// run computed. It is f32 unless the file says another.
func (f *Folder) DType() tensor.DType { return f.dtype }

// Joined reports whether the folder has matrices in one that Tensors returns by themselves, under
// the names of Config's class.
func (f *Folder) Joined() bool { return f.class == phi3Class }

// ConfigJSON returns the text of config.json, which the caller must not change.
func (f *Folder) ConfigJSON() []byte { return f.text }

// Tokenizer returns the tokenizer of the folder: a *tokenizer.File, or that of bytes for a
// checkpoint without files of a tokenizer.
func (f *Folder) Tokenizer() (tokenizer.Tokenizer, error) {
	tok, err := tokenizer.Load(f.path)
	if errors.Is(err, fs.ErrNotExist) && exists(f.path, checkpointName) {
		return tokenizer.Byte{}, nil
	}
	return tok, err
}

// Close closes the files. It is safe to call more than once.
func (f *Folder) Close() error {
	var faults []error
	for _, file := range f.files {
		faults = append(faults, file.Close())
	}
	return errors.Join(faults...)
}
