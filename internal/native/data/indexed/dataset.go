package indexed

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
)

// DType is the type of the token ids, with the code of the index.
type DType uint8

// The types that token ids can have.
const (
	Uint8  DType = 1
	Int32  DType = 4
	Uint16 DType = 8
)

// String returns numpy's name of the type.
func (d DType) String() string {
	if int(d) < len(dtypeNames) && dtypeNames[d] != "" {
		return dtypeNames[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

var dtypeNames = [...]string{"", "uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"}

// Width returns the bytes of a token id, 0 for a type that token ids do not have.
func (d DType) Width() int {
	switch d {
	case Uint8:
		return 1
	case Uint16:
		return 2
	case Int32:
		return 4
	default:
		return 0
	}
}

// DTypeOf returns the type that Megatron chooses for a vocabulary: uint16 below 65500 ids.
func DTypeOf(vocabSize int) DType {
	if vocabSize < 65500 {
		return Uint16
	}
	return Int32
}

const (
	magic      = "MMIDIDX\x00\x00"
	version    = 1
	headerSize = 34
)

// Paths returns the two files of a dataset.
func Paths(prefix string) (bin, idx string) { return prefix + ".bin", prefix + ".idx" }

// Find returns the prefix of the dataset that a path names: the prefix itself or one of the two
// files. It reports whether an index is there.
func Find(path string) (prefix string, found bool) {
	prefix = path
	for _, suffix := range []string{".bin", ".idx"} {
		if cut, has := strings.CutSuffix(path, suffix); has {
			prefix = cut
			break
		}
	}
	_, idx := Paths(prefix)
	info, err := os.Stat(idx)
	return prefix, err == nil && info.Mode().IsRegular()
}

// Dataset is an indexed dataset whose index has been checked against its tokens.
type Dataset struct {
	prefix    string
	dtype     DType
	index     *File
	bin       *File
	sequences int
	documents int
}

// Open maps the two files of a dataset and checks the index: every sequence begins where the one
// before ends, the last one ends with the .bin, and documents have whole sequences in order.
func Open(prefix string) (*Dataset, error) {
	binPath, idxPath := Paths(prefix)
	d := &Dataset{prefix: prefix}
	var err error
	if d.index, err = OpenMapped(idxPath); err != nil {
		return nil, err
	}
	if d.bin, err = OpenMapped(binPath); err != nil {
		_ = d.index.Close()
		return nil, err
	}
	if err := Guard(idxPath, d.check); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// check reads the header and compares the parts of the index with each other and with the .bin.
func (d *Dataset) check() error {
	binPath, idxPath := Paths(d.prefix)
	h, err := parse(d.index.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", idxPath, err)
	}
	d.dtype, d.sequences, d.documents = h.dtype, h.sequences, h.documents
	size, err := h.check(d.index.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", idxPath, err)
	}
	if size != int64(len(d.bin.Bytes)) {
		return fmt.Errorf("%s: it has %d bytes, and the %d sequences of %s take %d: the two files do not belong together, or one is not whole", binPath, len(d.bin.Bytes), d.sequences, idxPath, size)
	}
	return nil
}

// header is the beginning of an index.
type header struct {
	dtype                DType
	sequences, documents int
}

// parse reads the header of an index and compares it with the size of the file.
func parse(b []byte) (header, error) {
	if len(b) < headerSize {
		return header{}, fmt.Errorf("it has %d bytes, want a header of %d", len(b), headerSize)
	}
	if got := string(b[:9]); got != magic {
		return header{}, fmt.Errorf("byte 0: given the magic %q, want %q: this is no index of an indexed dataset", got, magic)
	}
	if got := binary.LittleEndian.Uint64(b[9:]); got != version {
		return header{}, fmt.Errorf("byte 9: given version %d, want %d", got, version)
	}
	h := header{dtype: DType(b[17])}
	if h.dtype.Width() == 0 {
		return header{}, fmt.Errorf("byte 17: given tokens of %v, want uint8, uint16 or int32", h.dtype)
	}
	n, ends := binary.LittleEndian.Uint64(b[18:]), binary.LittleEndian.Uint64(b[26:])
	if most := uint64(len(b)); n > most/12 || ends < 1 || ends > most/8 {
		return header{}, fmt.Errorf("byte 18: given %d sequences and %d ends of documents in an index of %d bytes: it is not whole, or damaged", n, ends, most)
	}
	h.sequences, h.documents = int(n), int(ends)-1
	if want := h.endsAt() + 8*int(ends); len(b) != want && len(b) != want+h.sequences {
		return header{}, fmt.Errorf("it has %d bytes, want %d for %d sequences and %d documents: it is not whole, or damaged", len(b), want, n, h.documents)
	}
	return h, nil
}

func (h header) pointersAt() int { return headerSize + 4*h.sequences }
func (h header) endsAt() int     { return headerSize + 12*h.sequences }

// check checks lengths, pointers and documents and returns the size of the .bin.
func (h header) check(b []byte) (size int64, err error) {
	for i := range h.sequences {
		length := int32(binary.LittleEndian.Uint32(b[headerSize+4*i:]))
		if length < 0 {
			return 0, fmt.Errorf("byte %d: given a length of %d for sequence %d, want 0 or more", headerSize+4*i, length, i)
		}
		if at := h.pointersAt() + 8*i; int64(binary.LittleEndian.Uint64(b[at:])) != size {
			return 0, fmt.Errorf("byte %d: sequence %d begins with byte %d of the .bin, want %d, where the one before ends", at, i, int64(binary.LittleEndian.Uint64(b[at:])), size)
		}
		size += int64(length) * int64(h.dtype.Width())
	}
	before := int64(0)
	for i := range h.documents + 1 {
		at := h.endsAt() + 8*i
		end := int64(binary.LittleEndian.Uint64(b[at:]))
		if end < before || end > int64(h.sequences) || i == 0 && end != 0 || i == h.documents && end != int64(h.sequences) {
			return 0, fmt.Errorf("byte %d: given sequence %d as the end of document %d, want numbers that rise from 0 to %d", at, end, i, h.sequences)
		}
		before = end
	}
	return size, nil
}

// DType returns the type of the tokens.
func (d *Dataset) DType() DType { return d.dtype }

// Documents returns the number of documents.
func (d *Dataset) Documents() int { return d.documents }

// Sequences returns the number of sequences.
func (d *Dataset) Sequences() int { return d.sequences }

// Tokens returns the number of tokens.
func (d *Dataset) Tokens() int { return len(d.bin.Bytes) / d.dtype.Width() }

// Bytes returns the tokens of all sequences as they are stored, little-endian and of the width of
// the type. The memory is that of the file: it is read within mapped.Guard, and not after Close.
func (d *Dataset) Bytes() []byte { return d.bin.Bytes }

// Sequence returns the range of tokens of sequence i.
func (d *Dataset) Sequence(i int) (from, to int) {
	h := header{dtype: d.dtype, sequences: d.sequences, documents: d.documents}
	at := binary.LittleEndian.Uint64(d.index.Bytes[h.pointersAt()+8*i:])
	from = int(at) / d.dtype.Width()
	return from, from + int(int32(binary.LittleEndian.Uint32(d.index.Bytes[headerSize+4*i:])))
}

// Read appends the tokens of sequence i to dst.
func (d *Dataset) Read(dst []int32, i int) ([]int32, error) {
	bin, _ := Paths(d.prefix)
	err := Guard(bin, func() error {
		from, to := d.Sequence(i)
		width, old := d.dtype.Width(), len(dst)
		dst = slices.Grow(dst, to-from)[:old+to-from]
		Load(dst[old:], d.bin.Bytes[from*width:to*width], width)
		return nil
	})
	return dst, err
}

// Close releases the files.
func (d *Dataset) Close() error {
	err := d.index.Close()
	if d.bin != nil {
		if other := d.bin.Close(); err == nil {
			err = other
		}
	}
	return durable.Explain(err)
}
