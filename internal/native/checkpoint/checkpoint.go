package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/safetensors"
)

// Checkpoint is a complete checkpoint on disk whose files matched its manifest when it was opened.
type Checkpoint struct {
	path     string
	manifest manifest
}

// Open verifies and opens the checkpoint at path, which is the directory of a checkpoint or that of
// a Store; of a Store it takes the newest one. Nothing is skipped: a damaged checkpoint is a
// *CorruptError. A Store without checkpoints gives an error that matches ErrNone. It ends with ctx.
func Open(ctx context.Context, path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("checkpoint: given the file %s, want the directory of a checkpoint or of a run's checkpoints; %s", path, onlyOwn)
	}
	if _, isStep := parseDirName(filepath.Base(path)); !isStep {
		if _, err := os.Stat(filepath.Join(path, manifestName)); errors.Is(err, fs.ErrNotExist) {
			return openNewest(ctx, path)
		}
	}
	return openDir(ctx, path)
}

const onlyOwn = "load_hf begins with weights that other programs have saved"

func openNewest(ctx context.Context, dir string) (*Checkpoint, error) {
	found, err := list(dir)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w in %s: want directories named %s with %s; %s", ErrNone, dir, dirName(100), manifestName, onlyOwn)
	}
	return openDir(ctx, found[0].path)
}

// openDir verifies the checkpoint whose directory is path.
func openDir(ctx context.Context, path string) (*Checkpoint, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	if step, named := parseDirName(filepath.Base(path)); named && step != m.Step {
		return nil, &CorruptError{Path: path, File: manifestName, Got: fmt.Sprintf("step %d", m.Step), Want: fmt.Sprintf("step %d, as the directory is named", step)}
	}
	for _, f := range m.Files {
		if err := verify(ctx, path, f); err != nil {
			return nil, err
		}
	}
	return &Checkpoint{path: path, manifest: m}, nil
}

// openFile opens a file of the checkpoint in dir and compares its size.
func openFile(dir string, want manifestFile) (*os.File, error) {
	expected := fmt.Sprintf("%d bytes", want.Size)
	f, err := durable.OpenRegular(filepath.Join(dir, want.Name))
	if err != nil {
		return nil, unusable(dir, want.Name, expected, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = unusable(dir, want.Name, expected, err)
	case info.Size() != want.Size:
		err = &CorruptError{Path: dir, File: want.Name, Got: fmt.Sprintf("%d bytes", info.Size()), Want: strconv.FormatInt(want.Size, 10)}
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// verify compares the size and the checksum of a file of the checkpoint in dir.
func verify(ctx context.Context, dir string, want manifestFile) error {
	f, err := openFile(dir, want)
	if err != nil {
		return err
	}
	defer f.Close()
	crc := crc32.New(castagnoli())
	n, err := io.Copy(crc, meter.New(ctx, "reading "+f.Name(), "", meter.Budget{}).Reader(f))
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return unusable(dir, want.Name, "", err)
	}
	if got := hex32(crc.Sum32()); n != want.Size || got != want.CRC32C {
		return &CorruptError{
			Path: dir, File: want.Name, Got: fmt.Sprintf("%d bytes with CRC-32C %s", n, got), Want: fmt.Sprintf("%d with %s", want.Size, want.CRC32C),
		}
	}
	return nil
}

// Step returns the training step that the checkpoint was saved after.
func (c *Checkpoint) Step() int64 { return c.manifest.Step }

// Run returns the name of the run that saved the checkpoint, "" if an older version of this program
// saved it.
func (c *Checkpoint) Run() string { return c.manifest.Run }

// Path returns the checkpoint's directory.
func (c *Checkpoint) Path() string { return c.path }

// Files returns the names of the files in the order of writing, without the manifest.
func (c *Checkpoint) Files() []string {
	names := make([]string, len(c.manifest.Files))
	for i, f := range c.manifest.Files {
		names[i] = f.Name
	}
	return names
}

// Has reports whether the checkpoint has a file of this name.
func (c *Checkpoint) Has(name string) bool { return slices.Contains(c.Files(), name) }

// Safetensors opens one of the checkpoint's tensor files, whose reads end with ctx. The caller
// closes it.
func (c *Checkpoint) Safetensors(ctx context.Context, name string) (*safetensors.File, error) {
	path, err := c.file(name)
	if err != nil {
		return nil, err
	}
	return safetensors.Open(ctx, path)
}

// maxJSON is the largest JSON file of a checkpoint.
const maxJSON = 64 << 20

// JSON decodes one of the checkpoint's JSON files into v. Content that does not decode is a
// *CorruptError. A field that v does not have is another error, so that no part of a saved state is
// lost silently.
func (c *Checkpoint) JSON(name string, v any) error {
	path, err := c.file(name)
	if err != nil {
		return err
	}
	text, err := durable.ReadRegular(path, maxJSON)
	if err != nil {
		return unusable(c.path, name, "a JSON file", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &CorruptError{Path: c.path, File: name, Got: "text that is not what it should be: " + err.Error(), Want: "a JSON value"}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("checkpoint: %s: %w: it was written by another version of this program", path, err)
	}
	return nil
}

func (c *Checkpoint) file(name string) (string, error) {
	if !c.Has(name) {
		return "", fmt.Errorf("checkpoint: %s has no file %q, it has %q", c.path, name, c.Files())
	}
	return filepath.Join(c.path, name), nil
}
