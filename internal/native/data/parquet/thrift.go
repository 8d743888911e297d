package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/meter"
)

// errShort says that a structure goes on after the bytes that there are.
var errShort = errors.New("the structure is not whole")

// The types of fields in the compact protocol.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	typeI16    = 4
	typeI32    = 5
	typeI64    = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
)

// maxDepth bounds structures in structures.
const maxDepth = 32

// thrift reads values of the compact protocol. After an error all values are 0.
type thrift struct {
	b     []byte
	at    int
	depth int
	meter *meter.Meter
	err   error
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.b)
}

// spend counts a step.
func (t *thrift) spend() {
	if err := t.meter.Spend(1); err != nil {
		t.fail(err)
	}
}

func (t *thrift) byte() byte {
	if t.at >= len(t.b) {
		t.fail(errShort)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		t.fail(errShort)
	case n < 0:
		t.fail(errors.New("a number has more than 64 bits"))
	default:
		t.at += n
		return v
	}
	return 0
}

func (t *thrift) int() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.b)-t.at) {
		t.fail(errShort)
		return nil
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at]
}

// structure calls field for each field of a structure. What it does not read is skipped.
func (t *thrift) structure(field func(id int, kind byte) (read bool)) {
	if t.depth++; t.depth > maxDepth {
		t.fail(fmt.Errorf("more than %d structures in each other", maxDepth))
	}
	defer func() { t.depth-- }()
	id := 0
	for t.err == nil {
		t.spend()
		head := t.byte()
		kind := head & 15
		if kind == 0 {
			return
		}
		if delta := int(head >> 4); delta > 0 {
			id += delta
		} else {
			id = int(t.int())
		}
		if id < 0 || id > math.MaxInt16 {
			t.fail(fmt.Errorf("a field has the number %d", id))
			return
		}
		if !field(id, kind) {
			t.skip(kind)
		}
	}
}

// list calls item for each item of a list, each of which takes some bytes of memory.
func (t *thrift) list(each int64, item func(kind byte)) {
	head := t.byte()
	n, kind := uint64(head>>4), head&15
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.b)) { // an item has a byte at least
		t.fail(errShort)
	} else if err := t.meter.Allocate(int64(n) * each); err != nil {
		t.fail(err)
	}
	for range n {
		t.spend()
		if t.err != nil {
			return
		}
		item(kind)
	}
}

func (t *thrift) skip(kind byte) {
	switch kind {
	case typeTrue, typeFalse:
	case typeByte:
		t.byte()
	case typeI16, typeI32, typeI64:
		t.uvarint()
	case typeDouble:
		for range 8 {
			t.byte()
		}
	case typeBinary:
		t.bytes()
	case typeList, typeSet:
		if t.depth++; t.depth > maxDepth {
			t.fail(fmt.Errorf("more than %d lists in each other", maxDepth))
		}
		t.list(0, func(kind byte) {
			if kind == typeTrue || kind == typeFalse {
				t.byte()
			} else {
				t.skip(kind)
			}
		})
		t.depth--
	case typeMap:
		t.skipMap()
	case typeStruct:
		t.structure(func(int, byte) bool { return false })
	default:
		t.fail(fmt.Errorf("a field has the type %d", kind))
	}
}

func (t *thrift) skipMap() {
	n := t.uvarint()
	if n == 0 {
		return
	}
	kinds := t.byte()
	if n > uint64(len(t.b)) {
		t.fail(errShort)
	}
	for range n {
		t.spend()
		if t.err != nil {
			return
		}
		t.skip(kinds >> 4)
		t.skip(kinds & 15)
	}
}
