package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
)

// A cache file holds the tokens, which therefore begin at a page of memory, followed by a footer,
// little-endian:
//
//	 0  magic    8 bytes
//	 8  version  u32
//	12  width    u32  bytes of a token id
//	16  count    u64  tokens
//	24  key      32 bytes
//	56  bad      u64  records that were left out
//	64  empty    u64  records without text, likewise
//	72  crc      u32  CRC-32C of the tokens
//	76  check    u32  CRC-32C of the 76 bytes before
const (
	cacheMagic   = "PRIMTOKS"
	cacheVersion = 4
	cacheFooter  = 80
)

type key [sha256.Size]byte

// cacheName is what errors call a cache file.
const cacheName = "the token cache"

// cacheKey depends on everything that decides the stream, as far as it is known
// without reading the files.
func cacheKey(c *corpus.Corpus, e Encoding, width int) (key, error) {
	h := sha256.New()
	between := corpus.Separator
	if !e.Separate {
		between = fmt.Sprint(e.EOD)
	}
	fmt.Fprintf(h, "v%d %q %d %q\n", cacheVersion, e.Tokenizer.Name(), width, between)
	err := c.Identify(h)
	return key(h.Sum(nil)), err
}

// cache is one token cache file.
type cache struct {
	path  string
	key   key
	width int
}

func newCache(dir string, k key, width int) cache {
	return cache{path: filepath.Join(dir, "tokens-"+hex.EncodeToString(k[:8])+".bin"), key: k, width: width}
}

// write creates the file with the output of encode, which returns what it has left out.
// It distinguishes errors of encode, which concern the corpus, from errors of the cache.
func (c cache) write(encode func(io.Writer) (corpus.Bad, error)) (corpusErr, cacheErr error) {
	if err := durable.MkdirAll(filepath.Dir(c.path)); err != nil {
		return nil, err
	}
	cacheErr = durable.WriteFile(c.path, func(w io.Writer) error {
		s := &sink{w: w, crc: crc32.New(castagnoli())}
		bad, err := encode(s)
		if err != nil {
			if s.err == nil {
				corpusErr = err
			}
			return err
		}
		_, err = w.Write(c.footer(s.size/uint64(c.width), bad, s.crc.Sum32()))
		return err
	})
	return corpusErr, cacheErr
}

// sink passes on what is written and records the size, the checksum and the error.
type sink struct {
	w    io.Writer
	size uint64
	crc  hash.Hash32
	err  error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (n int, err error) {
	n, s.err = s.w.Write(p)
	s.size += uint64(n)
	_, _ = s.crc.Write(p[:n])
	return n, s.err
}

func (c cache) footer(count uint64, bad corpus.Bad, crc uint32) []byte {
	f := make([]byte, 0, cacheFooter)
	f = append(f, cacheMagic...)
	f = binary.LittleEndian.AppendUint32(f, cacheVersion)
	f = binary.LittleEndian.AppendUint32(f, uint32(c.width))
	f = binary.LittleEndian.AppendUint64(f, count)
	f = append(f, c.key[:]...)
	f = binary.LittleEndian.AppendUint64(f, uint64(bad.Records))
	f = binary.LittleEndian.AppendUint64(f, uint64(bad.Empty))
	f = binary.LittleEndian.AppendUint32(f, crc)
	return binary.LittleEndian.AppendUint32(f, crc32.Checksum(f, castagnoli()))
}

// open returns the tokens of the cache file; an error that matches os.ErrNotExist
// says that there is none, any other that it cannot be used.
func (c cache) open(ctx context.Context) (*Tokens, error) {
	f, err := indexed.OpenMapped(c.path)
	if err != nil {
		return nil, err
	}
	var t *Tokens
	err = indexed.Guard(cacheName, func() (err error) {
		t, err = c.decode(ctx, f.Bytes)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.path, err), f.Close())
	}
	t.release = f.Close
	return t, nil
}

// decode returns the tokens of a cache file. It checks the footer against the content before it
// uses it.
func (c cache) decode(ctx context.Context, content []byte) (*Tokens, error) {
	size := len(content) - cacheFooter
	if size < 0 {
		return nil, fmt.Errorf("given %d bytes, want a footer of %d", len(content), cacheFooter)
	}
	tokens, f := content[:size:size], make([]byte, cacheFooter)
	copy(f, content[size:])
	if string(f[:8]) != cacheMagic {
		return nil, fmt.Errorf("given the magic %q, want %q", f[:8], cacheMagic)
	}
	if got, want := binary.LittleEndian.Uint32(f[76:]), crc32.Checksum(f[:76], castagnoli()); got != want {
		return nil, fmt.Errorf("given the footer checksum %08x, want %08x", got, want)
	}
	version, width := binary.LittleEndian.Uint32(f[8:]), binary.LittleEndian.Uint32(f[12:])
	if version != cacheVersion || width != uint32(c.width) {
		return nil, fmt.Errorf("given version %d and %d bytes per token, want %d and %d", version, width, cacheVersion, c.width)
	}
	if !bytes.Equal(f[24:56], c.key[:]) {
		return nil, errors.New("given the key of another corpus")
	}
	count := binary.LittleEndian.Uint64(f[16:])
	if count > math.MaxInt64/2 || int64(count)*int64(c.width) != int64(size) {
		return nil, fmt.Errorf("given %d bytes of tokens, want %d tokens of %d", size, count, c.width)
	}
	bad, empty := binary.LittleEndian.Uint64(f[56:]), binary.LittleEndian.Uint64(f[64:])
	if most := max(bad, empty); most > math.MaxInt64 {
		return nil, fmt.Errorf("given %d records that were left out, want at most %d", most, int64(math.MaxInt64))
	}
	crc, err := checksum(ctx, tokens)
	if err != nil {
		return nil, err
	}
	if want := binary.LittleEndian.Uint32(f[72:]); crc != want {
		return nil, fmt.Errorf("given the checksum %08x, want %08x", crc, want)
	}
	return &Tokens{bytes: tokens, width: c.width, crc: crc, bad: corpus.Bad{Records: int(bad), Empty: int(empty)}, what: cacheName}, nil
}

// checksum returns the CRC-32C of b, which may be mapped and long.
func checksum(ctx context.Context, b []byte) (uint32, error) {
	crc := uint32(0)
	const part = 64 << 20
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		now := b[:min(len(b), part)]
		crc = crc32.Update(crc, castagnoli(), now)
		b = b[len(now):]
	}
	return crc, nil
}
