package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// The header of a cache file, little-endian:
//
//	 0  magic    8 bytes
//	 8  version  u32
//	12  width    u32  bytes of a token id
//	16  count    u64  tokens
//	24  key      32 bytes
//	56  crc      u32  CRC-32C of the tokens
//	60  check    u32  CRC-32C of the 60 bytes before
const (
	cacheMagic   = "PRIMTOKS"
	cacheVersion = 1
	cacheHeader  = 64
)

type key [sha256.Size]byte

// cacheKey depends on everything that decides the stream, as far as it is known
// without reading the files.
func cacheKey(sources []source, tokenizer string, width int) key {
	h := sha256.New()
	fmt.Fprintf(h, "v%d %q %d %q\n", cacheVersion, tokenizer, width, separator)
	for _, s := range sources {
		path, err := filepath.Abs(s.path)
		if err != nil {
			path = s.path
		}
		fmt.Fprintf(h, "%q %d %d %d\n", path, s.size, s.whole, s.mtime.UnixNano())
	}
	return key(h.Sum(nil))
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

func (c cache) write(t *Tokens) error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return durable.Explain(err)
	}
	header := c.header(t)
	return durable.WriteFile(c.path, func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		_, err := w.Write(t.bytes)
		return err
	})
}

func (c cache) header(t *Tokens) []byte {
	h := make([]byte, 0, cacheHeader)
	h = append(h, cacheMagic...)
	h = binary.LittleEndian.AppendUint32(h, cacheVersion)
	h = binary.LittleEndian.AppendUint32(h, uint32(t.width))
	h = binary.LittleEndian.AppendUint64(h, uint64(t.Len()))
	h = append(h, c.key[:]...)
	h = binary.LittleEndian.AppendUint32(h, t.crc)
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli()))
}

// read returns the tokens of the cache file; an error that matches os.ErrNotExist
// says that there is none, any other that it cannot be used.
func (c cache) read() (*Tokens, error) {
	f, err := os.Open(c.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t, err := c.decode(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return t, nil
}

// decode reads a cache file of size bytes. It believes nothing in the header
// before it has compared it with size.
func (c cache) decode(r io.Reader, size int64) (*Tokens, error) {
	h := make([]byte, cacheHeader)
	if _, err := io.ReadFull(r, h); err != nil {
		return nil, fmt.Errorf("got %d bytes, want a header of %d", size, cacheHeader)
	}
	if string(h[:8]) != cacheMagic {
		return nil, fmt.Errorf("got the magic %q, want %q", h[:8], cacheMagic)
	}
	if got, want := binary.LittleEndian.Uint32(h[60:]), crc32.Checksum(h[:60], castagnoli()); got != want {
		return nil, fmt.Errorf("got the header checksum %08x, want %08x", got, want)
	}
	version, width := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	if version != cacheVersion || width != uint32(c.width) {
		return nil, fmt.Errorf("got version %d and %d bytes a token, want %d and %d", version, width, cacheVersion, c.width)
	}
	if !bytes.Equal(h[24:56], c.key[:]) {
		return nil, fmt.Errorf("got the key of another corpus")
	}
	count := binary.LittleEndian.Uint64(h[16:])
	if count > math.MaxInt64/2 || int64(count)*int64(c.width) != size-cacheHeader {
		return nil, fmt.Errorf("got %d bytes of tokens, want %d tokens of %d", size-cacheHeader, count, c.width)
	}
	tokens := make([]byte, size-cacheHeader)
	if _, err := io.ReadFull(r, tokens); err != nil {
		return nil, fmt.Errorf("read %d tokens: %w", count, err)
	}
	t := newTokens(tokens, c.width)
	if want := binary.LittleEndian.Uint32(h[56:]); t.crc != want {
		return nil, fmt.Errorf("got the checksum %08x, want %08x", t.crc, want)
	}
	return t, nil
}
