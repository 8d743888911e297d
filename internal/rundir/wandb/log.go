package wandb

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

const (
	blockSize  = 32768
	headerSize = 7

	// ident, magic and version begin a file.
	ident   = ":W&B"
	magic   = 0xbee1
	version = 0
)

// The kinds of parts of a record.
const (
	full   = 1
	first  = 2
	middle = 3
	last   = 4
)

// recordLog writes records in blocks: each part of a record has the CRC-32 of its kind and data,
// the length, and the kind, and does not cross the end of a block.
type recordLog struct {
	out io.Writer
	at  int // in the file
}

func (l *recordLog) write(p []byte) error {
	n, err := l.out.Write(p)
	l.at += n
	return err
}

// begin writes the header of a file.
func (l *recordLog) begin() error {
	head := append([]byte(ident), 0, 0, version)
	binary.LittleEndian.PutUint16(head[4:], magic)
	return l.write(head)
}

// append writes a record.
func (l *recordLog) append(data []byte) error {
	var parts []byte
	at, kind := l.at, byte(full)
	for begun := false; !begun || len(data) > 0; begun = true {
		room := blockSize - at%blockSize
		if room < headerSize {
			parts = append(parts, make([]byte, room)...)
			at, room = at+room, blockSize
		}
		n := min(len(data), room-headerSize)
		switch more := n < len(data); {
		case begun && more:
			kind = middle
		case begun:
			kind = last
		case more:
			kind = first
		}
		parts = appendPart(parts, kind, data[:n])
		at += headerSize + n
		data = data[n:]
	}
	return l.write(parts)
}

func appendPart(to []byte, kind byte, data []byte) []byte {
	sum := crc32.Update(crc32.ChecksumIEEE([]byte{kind}), crc32.IEEETable, data)
	to = binary.LittleEndian.AppendUint32(to, sum)
	to = binary.LittleEndian.AppendUint16(to, uint16(len(data)))
	return append(append(to, kind), data...)
}
