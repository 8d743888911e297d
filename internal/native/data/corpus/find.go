package corpus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/durable"
)

const binaryProbe = 8 << 10

// source is one file of a corpus. The first size bytes of a plain one are used.
type source struct {
	path   string
	rel    string // below the directory it was found in, with slashes
	whole  int64  // bytes of the file
	size   int64
	mtime  time.Time
	layout layout
}

// Skipped counts what a directory held besides text files.
type Skipped struct {
	Hidden  int // files and directories whose name begins with a dot
	Binary  int // files with a NUL in their first 8 KiB
	Special int // links, devices and the like
	Empty   int
}

// String says how many there are of each.
func (s Skipped) String() string {
	var kinds []string
	for _, kind := range []struct {
		n    int
		name string
	}{{s.Hidden, "hidden"}, {s.Binary, "binary"}, {s.Special, "special"}, {s.Empty, "empty"}} {
		if kind.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", kind.n, kind.name))
		}
	}
	if kinds == nil {
		return "it has no files"
	}
	return "all in it was skipped, " + strings.Join(kinds, ", ")
}

// finder collects the files of a corpus.
type finder struct {
	sources []source
	skipped Skipped

	// accept decides about a path below a directory; nil accepts everything.
	accept func(rel string, isDir bool) bool

	key    string // the parameter that errors are about
	format Format
}

// find collects the files that spec names: a file, a directory or a glob.
func (f *finder) find(ctx context.Context, spec string) error {
	info, err := os.Stat(spec)
	switch {
	case err == nil:
		return f.add(ctx, spec, info)
	case !errors.Is(err, fs.ErrNotExist):
		return f.errorf("%w", durable.Explain(err))
	case !strings.ContainsAny(spec, "*?["):
		return f.errorf("%w: want an existing file, a directory or a glob such as corpus/*.txt", err)
	}
	matches, err := filepath.Glob(spec)
	if err != nil {
		return f.errorf("given the glob %q: %w", spec, err)
	}
	if len(matches) == 0 {
		return f.errorf("the glob %q matches no file: check the directory and the pattern", spec)
	}
	wantHidden := strings.HasPrefix(filepath.Base(spec), ".")
	for _, match := range matches {
		if !wantHidden && strings.HasPrefix(filepath.Base(match), ".") {
			f.skipped.Hidden++
			continue
		}
		info, err := os.Stat(match)
		if err != nil {
			return f.errorf("%w", durable.Explain(err))
		}
		if err := f.add(ctx, match, info); err != nil {
			return err
		}
	}
	return nil
}

// errorf returns an error about the parameter that names the corpus.
func (f *finder) errorf(format string, args ...any) error {
	return fmt.Errorf(f.key+": "+format, args...)
}

func (f *finder) add(ctx context.Context, path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return f.walk(ctx, path)
	case info.Mode().IsRegular():
		return f.file(path, filepath.ToSlash(filepath.Base(path)), info)
	default:
		irregular := &durable.IrregularError{Path: path, Mode: info.Mode()}
		return f.errorf("%s is %s, want a file or a directory", path, irregular.Kind())
	}
}

// walk adds the text files below root in the order of their paths. Links are not
// followed, so that no file is read twice and no loop is entered.
func (f *finder) walk(ctx context.Context, root string) error {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return f.errorf("%w", durable.Explain(err))
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("corpus: list %s: %w", root, err)
		}
		if path == root {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("corpus: list %s: %w", root, err)
		}
		rel = filepath.ToSlash(rel)
		if f.accept != nil && !f.accept(rel, d.IsDir()) {
			return skip(d)
		}
		switch {
		case strings.HasPrefix(d.Name(), "."):
			f.skipped.Hidden++
			return skip(d)
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			f.skipped.Special++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return f.errorf("%w", durable.Explain(err))
		}
		return f.file(path, rel, info)
	})
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (f *finder) file(path, rel string, info fs.FileInfo) error {
	if info.Size() == 0 {
		f.skipped.Empty++
		return nil
	}
	f.sources = append(f.sources, source{
		path: path, rel: rel, whole: info.Size(), size: info.Size(), mtime: info.ModTime(), layout: layoutOf(path, f.format),
	})
	return nil
}

// limit keeps files until they fill maxBytes, separators included, and cuts the last of them. When
// not everything fits, or when that is not known because files are not plain, the files are taken
// in the order of a hash of their relative paths: a mixture that is the same on every machine. It
// reports whether the reader has to count the text itself.
func (f *finder) limit(maxBytes int64) (count bool) {
	total := int64(0)
	for _, s := range f.sources {
		total += s.size + int64(len(Separator))
		count = count || !s.layout.plain()
	}
	if maxBytes <= 0 || total <= maxBytes && !count {
		return false
	}
	hashes := make(map[string][sha256.Size]byte, len(f.sources))
	for _, s := range f.sources {
		hashes[s.rel] = sha256.Sum256([]byte(s.rel))
	}
	slices.SortStableFunc(f.sources, func(a, b source) int {
		x, y := hashes[a.rel], hashes[b.rel]
		return cmp.Or(bytes.Compare(x[:], y[:]), cmp.Compare(a.path, b.path))
	})
	if count {
		return true
	}
	left := maxBytes
	for i := range f.sources {
		f.sources[i].size = min(f.sources[i].size, left)
		left -= f.sources[i].size + int64(len(Separator))
		if left <= 0 {
			f.sources = f.sources[:i+1]
			break
		}
	}
	return false
}

// dropBinary removes the files that look like something else than text.
func (f *finder) dropBinary(ctx context.Context) error {
	buf := make([]byte, binaryProbe)
	kept := f.sources[:0]
	for _, s := range f.sources {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("corpus: list the corpus: %w", err)
		}
		isBinary := false
		if s.layout.plain() {
			var err error
			if isBinary, err = hasNUL(s.path, buf); err != nil {
				return f.errorf("%w", durable.Explain(err))
			}
		}
		if isBinary {
			f.skipped.Binary++
			continue
		}
		kept = append(kept, s)
	}
	f.sources = kept
	return nil
}

func hasNUL(path string, buf []byte) (bool, error) {
	file, err := durable.OpenRegular(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	n, err := io.ReadFull(file, buf)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return false, err
	}
	return bytes.IndexByte(buf[:n], 0) >= 0, nil
}
