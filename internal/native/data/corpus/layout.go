package corpus

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/primus-fl/primus/internal/meter"
)

// Format is how files hold documents.
type Format string

// The formats.
const (
	Auto    Format = "auto"    // by the name of each file: .jsonl, .ndjson, .parquet, and text for any other
	Text    Format = "text"    // a file is one document
	JSONL   Format = "jsonl"   // a line is a JSON object, of which one key holds the document
	Parquet Format = "parquet" // a row is a document, of which one column holds the text
)

// Values returns the formats.
func (Format) Values() []string {
	return []string{string(Auto), string(Text), string(JSONL), string(Parquet)}
}

// compression is how a file is compressed.
type compression string

const (
	gzipped compression = "gzip"
	zstded  compression = "zstd"
)

// layout is how a file holds documents.
type layout struct {
	format      Format
	compression compression // "" for none
}

// layoutOf returns the layout of a file by its name, with the format asked for.
func layoutOf(path string, f Format) layout {
	l := layout{format: f}
	name := strings.ToLower(filepath.Base(path))
	for suffix, c := range map[string]compression{".gz": gzipped, ".gzip": gzipped, ".zst": zstded, ".zstd": zstded} {
		if inner, found := strings.CutSuffix(name, suffix); found {
			name, l.compression = inner, c
			break
		}
	}
	if f != Auto && f != "" {
		return l
	}
	switch filepath.Ext(name) {
	case ".jsonl", ".ndjson":
		l.format = JSONL
	case ".parquet":
		l.format = Parquet
	default:
		l.format = Text
	}
	return l
}

// plain reports whether the bytes of the file are those of its document.
func (l layout) plain() bool { return l.format == Text && l.compression == "" }

// maxWindow is the budget for what zstd data can refer back to, which the decoder keeps.
const maxWindow = 128 << 20

// decompress returns the content of a file of this layout.
func (l layout) decompress(r io.Reader) (io.ReadCloser, error) {
	switch l.compression {
	case gzipped:
		return gzip.NewReader(r)
	case zstded:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	default:
		return io.NopCloser(r), nil
	}
}

// counted counts what is read from a file.
type counted struct {
	io.Reader
	n     int64
	total *atomic.Int64 // of all files
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.total.Add(int64(n))
	return n, err
}

// unpackError describes a fault in compressed content, of which some bytes were read.
func unpackError(c compression, read int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the %s data ends too early, after %d bytes of the file: it is not whole", c, read)
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return &meter.Error{What: "unpacking", Limit: fmt.Sprintf("%d bytes for what the data refers back to", maxWindow), Remedy: "compress it again without --ultra and --long"}
	}
	return fmt.Errorf("the %s data is damaged before byte %d of the file: %w", c, read, err)
}
