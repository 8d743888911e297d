package torchfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/primus-fl/primus/internal/durable"
)

// OpenSaved reads a file of torch.save whose value is a dict. The tensors of the Checkpoint are
// those of the dict that is the value of key. The caller closes it.
func OpenSaved(ctx context.Context, path, key string) (*Checkpoint, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("torchfile: %w", durable.Explain(err))
	}
	c := &Checkpoint{ctx: ctx, dir: path, tensors: map[string]*Tensor{}, files: map[string]*os.File{path: f}}
	if err := c.readSaved(ctx, f, key); err != nil {
		return nil, errors.Join(fmt.Errorf("torchfile: %s: %w", path, err), c.Close())
	}
	return c, nil
}

func (c *Checkpoint) readSaved(ctx context.Context, f *os.File, key string) error {
	info, err := f.Stat()
	if err != nil {
		return durable.Explain(err)
	}
	a, err := readArchive(ctx, io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return err
	}
	root, ok := a.root.(*dict)
	if !ok {
		return fmt.Errorf("given %s, want a dict with %q", describe(a.root), key)
	}
	values, ok := entries(root.get(key))
	if !ok {
		return fmt.Errorf("given %s for %q, want a dict of tensors", describe(root.get(key)), key)
	}
	for _, pair := range values {
		name, _ := pair[0].(string)
		p, err := a.tensor(pair[1])
		if errors.Is(err, errNoTensor) {
			continue
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		whole := &chunk{at: make([]int, len(p.shape)), sizes: p.shape, data: p.data}
		c.tensors[name] = &Tensor{DType: p.dtype, Shape: p.shape, name: name, chunks: []*chunk{whole}, of: c}
	}
	return nil
}
