package checkpoint

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/safetensors"
)

// Writer adds files to the checkpoint that a Save is writing. It is valid inside the function that
// Save calls. Its first error ends the save, whether or not the function returns it.
type Writer struct {
	dir    string
	files  []manifestFile
	mark   Mark
	err    error
	closed bool
}

// Safetensors adds a file of tensors. The entries borrow their memory until the call returns.
func (w *Writer) Safetensors(name string, entries []safetensors.Entry, metadata map[string]string) error {
	return w.File(name, func(out io.Writer) error { return safetensors.Write(out, entries, metadata) })
}

// JSON adds a file with v as indented JSON.
func (w *Writer) JSON(name string, v any) error {
	return w.File(name, func(out io.Writer) error {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = out.Write(append(text, '\n'))
		return err
	})
}

// File adds a file with the output of write. A name is letters, digits, dots, dashes and
// underscores, and unique within the checkpoint.
func (w *Writer) File(name string, write func(out io.Writer) error) error {
	if w.closed {
		return ErrClosed
	}
	if w.err == nil {
		w.err = w.add(name, write)
	}
	return w.err
}

func (w *Writer) add(name string, write func(out io.Writer) error) error {
	if !fileName.MatchString(name) || name == manifestName {
		return fmt.Errorf("checkpoint: given the file name %q, want letters, digits, dots, dashes and underscores, not %s", name, manifestName)
	}
	if slices.ContainsFunc(w.files, func(f manifestFile) bool { return f.Name == name }) {
		return fmt.Errorf("checkpoint: the file %q was written twice", name)
	}
	sum := &checksummer{}
	err := durable.Create(filepath.Join(w.dir, name), func(out io.Writer) error {
		sum.w = out
		return write(sum)
	})
	if err != nil {
		return fmt.Errorf("checkpoint: write %s: %w", name, err)
	}
	w.files = append(w.files, manifestFile{Name: name, Size: sum.size, CRC32C: hex32(sum.crc)})
	return nil
}

// finish writes the manifest, which makes the directory a checkpoint.
func (w *Writer) finish(m manifest) error {
	w.closed = true
	if w.err != nil {
		return w.err
	}
	if len(w.files) == 0 {
		return fmt.Errorf("checkpoint: given a checkpoint without files, want at least one")
	}
	m.Format, m.Version, m.Files = manifestFormat, manifestVersion, w.files
	text, err := m.encode()
	if err != nil {
		return err
	}
	err = durable.Create(filepath.Join(w.dir, manifestName), func(out io.Writer) error {
		_, err := out.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("checkpoint: write %s: %w", manifestName, err)
	}
	if err := durable.SyncDir(w.dir); err != nil {
		return fmt.Errorf("checkpoint: flush %s: %w", w.dir, err)
	}
	return nil
}

// checksummer is a writer that counts and checksums the bytes written to it.
type checksummer struct {
	w    io.Writer
	size int64
	crc  uint32
}

func (s *checksummer) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.size += int64(n)
	s.crc = crc32.Update(s.crc, castagnoli(), p[:n])
	return n, err
}
