package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The encodings of values.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDeltaLength     = 6
	encodingDeltaByteArray  = 7
	encodingRLEDictionary   = 8
)

var errValues = errors.New("its values are not whole")

// decoder returns a function that returns the next of n values.
func (p *pages) decoder(encoding int64, b []byte, n int64) (func() ([]byte, error), error) {
	switch encoding {
	case encodingPlain:
		return func() (value []byte, err error) {
			value, b, err = plainValue(b)
			return value, err
		}, nil
	case encodingPlainDictionary, encodingRLEDictionary:
		return p.dictionaryValues(b, n)
	case encodingDeltaLength:
		lengths, rest, err := p.deltas(b, n)
		if err != nil {
			return nil, err
		}
		return func() (value []byte, err error) {
			value, rest, lengths, err = lengthValue(rest, lengths)
			return value, err
		}, nil
	case encodingDeltaByteArray:
		return p.prefixedValues(b, n)
	default:
		return nil, fmt.Errorf("the encoding of its values is %d, want PLAIN, RLE_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY", encoding)
	}
}

// plainValue cuts off a value that follows its length.
func plainValue(b []byte) (value, rest []byte, err error) {
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, nil, errValues
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n:n], b[n:], nil
}

func (p *pages) dictionaryValues(b []byte, n int64) (func() ([]byte, error), error) {
	if n == 0 {
		return func() ([]byte, error) { return nil, errValues }, nil
	}
	if len(b) == 0 || b[0] > 32 {
		return nil, errValues
	}
	indexes := hybrid{b: b[1:], width: int(b[0])}
	return func() ([]byte, error) {
		i, err := indexes.next()
		if err != nil {
			return nil, err
		}
		if int64(i) >= int64(len(p.dictionary)) {
			return nil, fmt.Errorf("it has value %d of a dictionary of %d", i, len(p.dictionary))
		}
		return p.dictionary[i], nil
	}, nil
}

// lengthValue cuts off a value of the first of some lengths.
func lengthValue(b []byte, lengths []int64) (value, rest []byte, others []int64, err error) {
	if len(lengths) == 0 || lengths[0] < 0 || lengths[0] > int64(len(b)) {
		return nil, nil, nil, errValues
	}
	n := lengths[0]
	return b[:n:n], b[n:], lengths[1:], nil
}

// prefixedValues returns values that share a beginning with the value before.
func (p *pages) prefixedValues(b []byte, n int64) (func() ([]byte, error), error) {
	prefixes, rest, err := p.deltas(b, n)
	if err != nil {
		return nil, err
	}
	lengths, rest, err := p.deltas(rest, n)
	if err != nil {
		return nil, err
	}
	var last []byte
	return func() (suffix []byte, err error) {
		if len(prefixes) == 0 || prefixes[0] < 0 || prefixes[0] > int64(len(last)) {
			return nil, errValues
		}
		if suffix, rest, lengths, err = lengthValue(rest, lengths); err != nil {
			return nil, err
		}
		last = append(last[:prefixes[0]], suffix...)
		prefixes = prefixes[1:]
		return last, nil
	}, nil
}

// hybrid reads numbers of a width of bits that are repeated or packed in eights.
type hybrid struct {
	b        []byte
	width    int
	repeated uint64 // how often value comes still
	value    uint32
	packed   uint64 // numbers that are packed still
	bit      uint   // of the first byte
}

func (h *hybrid) next() (uint32, error) {
	for h.repeated == 0 && h.packed == 0 {
		if err := h.run(); err != nil {
			return 0, err
		}
	}
	if h.repeated > 0 {
		h.repeated--
		return h.value, nil
	}
	h.packed--
	v := uint64(0)
	for got := 0; got < h.width; {
		if len(h.b) == 0 {
			return 0, errValues
		}
		v |= uint64(h.b[0]>>h.bit) << got
		take := min(8-int(h.bit), h.width-got)
		got += take
		if h.bit += uint(take); h.bit == 8 {
			h.b, h.bit = h.b[1:], 0
		}
	}
	return uint32(v & (1<<h.width - 1)), nil
}

// run reads the beginning of a run.
func (h *hybrid) run() error {
	head, n := binary.Uvarint(h.b)
	if n <= 0 {
		return errValues
	}
	h.b = h.b[n:]
	if head&1 == 1 {
		h.packed, h.bit = head>>1*8, 0
		return nil
	}
	size := (h.width + 7) / 8
	if len(h.b) < size {
		return errValues
	}
	var value [4]byte
	copy(value[:], h.b[:size])
	h.b, h.repeated, h.value = h.b[size:], head>>1, binary.LittleEndian.Uint32(value[:])
	return nil
}

// deltas reads n numbers in the encoding DELTA_BINARY_PACKED and returns the bytes after them.
func (p *pages) deltas(b []byte, n int64) ([]int64, []byte, error) {
	t := &thrift{b: b, meter: p.meter}
	block, minis, count, value := t.uvarint(), t.uvarint(), t.uvarint(), t.int()
	if t.err != nil || int64(count) != n || minis == 0 || minis > 512 || block == 0 || block > 1<<20 || block%minis != 0 || block/minis%8 != 0 {
		return nil, nil, errValues
	}
	each := int(block / minis)
	if err := p.meter.Allocate(8 * n); err != nil {
		return nil, nil, err
	}
	all := make([]int64, 0, min(n, int64(8*len(b)+1)))
	if n > 0 {
		all = append(all, value)
	}
	for int64(len(all)) < n {
		least := t.int()
		widths := make([]byte, minis)
		for i := range widths {
			widths[i] = t.byte()
		}
		for _, width := range widths {
			if int64(len(all)) >= n {
				break
			}
			size := each * int(width) / 8
			if t.err != nil || width > 64 || size > len(t.b)-t.at {
				return nil, nil, errValues
			}
			packed := t.b[t.at : t.at+size]
			t.at += size
			if err := p.meter.Spend(each); err != nil {
				return nil, nil, err
			}
			for i := range each {
				if int64(len(all)) >= n {
					break
				}
				value += least + int64(bitsAt(packed, i*int(width), int(width)))
				all = append(all, value)
			}
		}
	}
	return all, t.b[t.at:], t.err
}

// bitsAt returns the width bits from a bit on.
func bitsAt(b []byte, at, width int) (v uint64) {
	for i := range width {
		v |= uint64(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return v
}
