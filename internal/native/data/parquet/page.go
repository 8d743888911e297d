package parquet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/primus-fl/primus/internal/meter"
)

const (
	// maxPage bounds the memory of a page, and maxSteps the work with its values, of which each takes
	// at most four steps.
	maxPage  = 512 << 20
	maxSteps = 1 << 26

	// maxWindow bounds how far back the data of zstd refers.
	maxWindow = 32 << 20

	// gzipRatio and zstdRatio are more than gzip and zstd can compress.
	gzipRatio = 1100
	zstdRatio = 1 << 16

	firstHeader = 4 << 10
)

// The types of pages.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// header is that of a page.
type header struct {
	kind, plain, packed    int64 // type, and bytes without and with compression
	values, encoding       int64
	levels                 int64 // encoding of the levels of version 1
	defBytes, repBytes     int64 // of the levels of version 2
	crc                    int64
	checked, notCompressed bool
}

func (t *thrift) header() (h header) {
	numbers := func(into map[int]*int64) {
		t.structure(func(id int, kind byte) bool {
			if id == 7 && kind == typeFalse {
				h.notCompressed = true
			}
			to := into[id]
			if to == nil || kind != typeI32 {
				return false
			}
			*to = t.int()
			return true
		})
	}
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeI32:
			h.kind = t.int()
		case id == 2 && kind == typeI32:
			h.plain = t.int()
		case id == 3 && kind == typeI32:
			h.packed = t.int()
		case id == 4 && kind == typeI32:
			h.crc, h.checked = t.int(), true
		case id == 5 && kind == typeStruct:
			numbers(map[int]*int64{1: &h.values, 2: &h.encoding, 3: &h.levels})
		case id == 7 && kind == typeStruct:
			numbers(map[int]*int64{1: &h.values, 2: &h.encoding})
		case id == 8 && kind == typeStruct:
			numbers(map[int]*int64{1: &h.values, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes})
		default:
			return false
		}
		return true
	})
	return h
}

// pages reads the pages of a chunk.
type pages struct {
	f          *File
	column     column
	chunk      chunk
	meter      *meter.Meter // of the page
	done       int64        // values passed on
	dictionary [][]byte
	body, flat []byte
}

func (p *pages) read(ctx context.Context, yield func([]byte) error) error {
	at := p.chunk.data
	if p.chunk.hasDictionary && p.chunk.dictionary > 0 {
		at = min(at, p.chunk.dictionary)
	}
	if p.chunk.kind != p.column.kind {
		return fmt.Errorf("it has values of type %d, and the schema says %d", p.chunk.kind, p.column.kind)
	}
	end := at + p.chunk.size
	if at < 4 || p.chunk.size < 0 || end > p.f.size || end < at {
		return fmt.Errorf("it is at bytes %d to %d of a file of %d", at, end, p.f.size)
	}
	for p.done < p.chunk.values {
		if at >= end {
			return fmt.Errorf("byte %d: it has %d values, want %d", at, p.done, p.chunk.values)
		}
		p.meter = meter.New(ctx, "the page", "write the file with smaller pages", meter.Budget{Bytes: maxPage, Steps: maxSteps})
		next, err := p.page(at, end, yield)
		if failed, ok := errors.AsType[*yieldError](err); ok {
			return failed.error
		}
		if err != nil {
			return fmt.Errorf("the page at byte %d: %w", at, err)
		}
		at = next
	}
	return nil
}

// yieldError is an error of the function that takes the values.
type yieldError struct{ error }

// page reads the page at some byte and returns the byte after it.
func (p *pages) page(at, end int64, yield func([]byte) error) (int64, error) {
	h, used, err := p.header(at, end)
	if err != nil {
		return 0, err
	}
	at += used
	if h.packed < 0 || h.packed > end-at || h.plain < 0 || h.values < 0 {
		return 0, fmt.Errorf("it says that it has %d bytes, %d without compression, and %d values, and there are %d bytes", h.packed, h.plain, h.values, end-at)
	}
	if err := p.meter.Allocate(h.packed + h.plain); err != nil {
		return 0, err
	}
	p.body = grow(p.body, int(h.packed))
	if err := p.meter.ReadAt(p.f.r, p.body, at); err != nil {
		return 0, err
	}
	if h.checked && uint32(h.crc) != crc32.ChecksumIEEE(p.body) {
		return 0, fmt.Errorf("given the checksum %08x, want %08x", crc32.ChecksumIEEE(p.body), uint32(h.crc))
	}
	switch h.kind {
	case dictionaryPage:
		err = p.readDictionary(h)
	case dataPage:
		err = p.readData(h, yield)
	case dataPageV2:
		err = p.readDataV2(h, yield)
	}
	return at + h.packed, err
}

// header reads the header of a page, whose size is not known before.
func (p *pages) header(at, end int64) (header, int64, error) {
	for size := int64(firstHeader); ; size *= 8 {
		size = min(size, end-at)
		if err := p.meter.Allocate(size); err != nil {
			return header{}, 0, err
		}
		buf := make([]byte, size)
		if err := p.meter.ReadAt(p.f.r, buf, at); err != nil {
			return header{}, 0, err
		}
		t := &thrift{b: buf, meter: p.meter}
		h := t.header()
		if t.err == nil {
			return h, int64(t.at), nil
		}
		if !errors.Is(t.err, errShort) || size == end-at {
			return header{}, 0, fmt.Errorf("its header: %w", t.err)
		}
	}
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// decompress returns the content of a page, in memory of the page.
func (p *pages) decompress(packed []byte, size int64) ([]byte, error) {
	var out []byte
	var err error
	if ratio := map[codec]int64{gzipped: gzipRatio, zstded: zstdRatio}[p.chunk.codec]; ratio > 0 && size > ratio*int64(len(packed)) {
		return nil, fmt.Errorf("it has %d bytes with compression, and says %d without", len(packed), size)
	}
	switch p.chunk.codec {
	case uncompressed:
		out = packed
	case snapped:
		n, elements, lenErr := snappyLen(packed)
		if lenErr != nil || n != size {
			return nil, fmt.Errorf("its compressed data is damaged: it has %d bytes without compression, want %d", n, size)
		}
		p.flat = grow(p.flat, int(n))
		out, err = p.flat, snappyDecode(p.meter, p.flat, elements)
	case gzipped:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			out, err = p.readAll(r, size)
		}
	case zstded:
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(uint64(max(size, maxWindow)))); err == nil {
			out, err = p.readAll(d, size)
			d.Close()
		}
	default:
		return nil, fmt.Errorf("its compression is %v, want UNCOMPRESSED, SNAPPY, GZIP or ZSTD", p.chunk.codec)
	}
	switch {
	case p.meter.Check() != nil:
		return nil, p.meter.Check()
	case err != nil:
		return nil, fmt.Errorf("its compressed data is damaged: %w", err)
	case int64(len(out)) != size:
		return nil, fmt.Errorf("it has %d bytes without compression, want %d", len(out), size)
	}
	return out, nil
}

// readAll returns what a decoder gives, which is size bytes.
func (p *pages) readAll(decoder io.Reader, size int64) ([]byte, error) {
	r := p.meter.Reader(decoder)
	p.flat = grow(p.flat, int(size))
	if _, err := io.ReadFull(r, p.flat); err != nil {
		return nil, err
	}
	switch n, err := io.ReadFull(r, make([]byte, 1)); { // the end, where the checksum is compared
	case n > 0:
		return nil, fmt.Errorf("it has more than %d bytes without compression", size)
	case err != io.EOF:
		return nil, err
	}
	return p.flat, nil
}

func (p *pages) readDictionary(h header) error {
	if h.encoding != encodingPlain && h.encoding != encodingPlainDictionary {
		return fmt.Errorf("the encoding of a dictionary is %d, want PLAIN", h.encoding)
	}
	flat, err := p.decompress(p.body, h.plain)
	if err != nil {
		return err
	}
	if err := p.meter.Allocate(int64(len(flat))); err != nil {
		return err
	}
	flat = bytes.Clone(flat)
	if h.values > int64(len(flat)/4) {
		return fmt.Errorf("a dictionary of %d bytes cannot have %d values", len(flat), h.values)
	}
	if err := p.meter.Allocate(h.values * int64(unsafe.Sizeof(flat))); err != nil {
		return err
	}
	p.dictionary = make([][]byte, 0, h.values)
	for range h.values {
		if err := p.meter.Spend(1); err != nil {
			return err
		}
		var value []byte
		if value, flat, err = plainValue(flat); err != nil {
			return err
		}
		p.dictionary = append(p.dictionary, value)
	}
	return nil
}

func (p *pages) readData(h header, yield func([]byte) error) error {
	flat, err := p.decompress(p.body, h.plain)
	if err != nil {
		return err
	}
	var levels []byte
	if p.column.optional > 0 {
		if h.levels != encodingRLE {
			return fmt.Errorf("the encoding of its levels is %d, want RLE", h.levels)
		}
		if len(flat) < 4 || uint64(binary.LittleEndian.Uint32(flat)) > uint64(len(flat)-4) {
			return errors.New("its levels are not whole")
		}
		n := int(binary.LittleEndian.Uint32(flat))
		levels, flat = flat[4:4+n], flat[4+n:]
	}
	return p.values(h, levels, flat, yield)
}

func (p *pages) readDataV2(h header, yield func([]byte) error) error {
	if h.defBytes < 0 || h.repBytes < 0 || h.defBytes+h.repBytes > min(h.packed, h.plain) {
		return fmt.Errorf("it has levels of %d and %d bytes in %d", h.repBytes, h.defBytes, h.packed)
	}
	both := h.defBytes + h.repBytes
	flat := p.body[both:]
	if !h.notCompressed {
		var err error
		if flat, err = p.decompress(flat, h.plain-both); err != nil {
			return err
		}
	}
	return p.values(h, p.body[h.repBytes:both], flat, yield)
}

// values passes on the values of a page, whose levels say which are missing.
func (p *pages) values(h header, levels, flat []byte, yield func([]byte) error) error {
	if h.values > p.chunk.values-p.done {
		return fmt.Errorf("it has %d values, and the column has %d after the pages before", h.values, p.chunk.values-p.done)
	}
	present := h.values
	var missing func() (bool, error)
	if p.column.optional > 0 {
		width := bits.Len(uint(p.column.optional))
		count := hybrid{b: levels, width: width}
		present = 0
		for range h.values {
			if err := p.meter.Spend(1); err != nil {
				return err
			}
			level, err := count.next()
			if err != nil {
				return fmt.Errorf("its levels: %w", err)
			}
			if level == uint32(p.column.optional) {
				present++
			}
		}
		again := hybrid{b: levels, width: width}
		missing = func() (bool, error) {
			level, err := again.next()
			return level != uint32(p.column.optional), err
		}
	}
	next, err := p.decoder(h.encoding, flat, present)
	if err != nil {
		return err
	}
	for range h.values {
		if err := p.meter.Spend(1); err != nil {
			return err
		}
		var value []byte
		absent := false
		if missing != nil {
			if absent, err = missing(); err != nil {
				return err
			}
		}
		if !absent {
			if value, err = next(); err != nil {
				return err
			}
			if value == nil {
				value = []byte{}
			}
		}
		if err := yield(value); err != nil {
			return &yieldError{err}
		}
		p.done++
	}
	return nil
}
