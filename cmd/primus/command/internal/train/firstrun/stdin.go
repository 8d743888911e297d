package firstrun

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/durable"
)

// SaveInput copies standard input to a new file in dir, if it is one of the texts, and returns the
// texts with the name of that file. The name is that of the run, or stdin, and its extension says
// what the content looks like: Parquet, JSON lines or text, compressed or not.
func SaveInput(prog cli.Program, stdin io.Reader, texts []string, dir, run string) ([]string, error) {
	at := slices.Index(texts, experiments.StandardInput)
	if at < 0 {
		return texts, nil
	}
	if slices.Contains(texts[at+1:], experiments.StandardInput) {
		return nil, cli.UsageError{Err: errors.New("given - twice, want it once: standard input can be read once")}
	}
	if run == "" {
		run = "stdin"
	}
	if !names.MatchString(run) {
		return nil, badName(run)
	}
	if prog.Width != nil {
		fmt.Fprintln(prog.Err, "reading the text from standard input, which Ctrl-D ends")
	}
	from := bufio.NewReaderSize(stdin, 64<<10)
	head, err := from.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(head) == 0 {
		return nil, errors.New("standard input is empty, want the text to train on")
	}
	kind := extension(head)
	if kind == ".txt" && bytes.IndexByte(head, 0) >= 0 {
		return nil, errors.New("standard input is binary, want text, JSON lines or Parquet, compressed with gzip or zstd or not")
	}
	file := filepath.Join(dir, run+kind)
	err = durable.Create(file, func(w io.Writer) error {
		_, err := from.WriteTo(w)
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already: primus train %[1]s trains on it, and exp_name=NAME saves standard input under another name", file)
	}
	if err != nil {
		return nil, fmt.Errorf("save standard input: %w", durable.Explain(err))
	}
	texts = slices.Clone(texts)
	texts[at] = file
	return texts, nil
}

// TempInput is SaveInput for a text that is only looked at. The caller calls remove.
func TempInput(prog cli.Program, stdin io.Reader, texts []string, run string) (saved []string, remove func() error, err error) {
	if !slices.Contains(texts, experiments.StandardInput) {
		return texts, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "primus-text-")
	if err != nil {
		return nil, nil, durable.Explain(err)
	}
	saved, err = SaveInput(prog, stdin, texts, dir, run)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return saved, func() error { return os.RemoveAll(dir) }, nil
}

// extension returns the extension of a file that begins so.
func extension(head []byte) string {
	text := string(head)
	switch {
	case strings.HasPrefix(text, "PAR1"):
		return ".parquet"
	case strings.HasPrefix(text, "\x1f\x8b"):
		if r, err := gzip.NewReader(strings.NewReader(text)); err == nil {
			return extension(beginning(r)) + ".gz"
		}
	case strings.HasPrefix(text, "\x28\xb5\x2f\xfd"):
		return extension(unzstd(text)) + ".zst"
	case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), `{"`):
		return ".jsonl"
	}
	return ".txt"
}

// unzstd returns what zstd data begins with. The header of a frame says how far back its data may
// refer, which a decoder allocates at once. The first bytes refer to nothing before them, so a
// header that asks for 128 KiB, the size of a block, takes its place.
func unzstd(text string) []byte {
	var h zstd.Header
	if err := h.Decode([]byte(text)); err != nil || h.DictionaryID != 0 {
		return nil
	}
	const window = 128 << 10
	r, err := zstd.NewReader(io.MultiReader(strings.NewReader("\x28\xb5\x2f\xfd\x00\x38"), strings.NewReader(text[h.HeaderSize:])),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil
	}
	defer r.Close()
	return beginning(r)
}

// beginning returns what a decompressor makes of the first bytes of its data.
func beginning(r io.Reader) []byte {
	head := make([]byte, 512)
	n, _ := io.ReadFull(r, head) // data that ends too early is enough here
	if text := string(head[:n]); strings.HasPrefix(text, "\x1f\x8b") || strings.HasPrefix(text, "\x28\xb5\x2f\xfd") {
		return nil // packed twice, which is for a reader of the file to refuse
	}
	return head[:n]
}
