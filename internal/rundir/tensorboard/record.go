package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the masked checksum of data.
func checksum(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// record frames data.
func record(data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	out = binary.LittleEndian.AppendUint32(out, checksum(out))
	out = append(out, data...)
	return binary.LittleEndian.AppendUint32(out, checksum(data))
}

// Numbers of fields: of Event, of Summary and its values, and of SessionLog.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	summaryValue     = 1
	valueTag         = 1
	valueSimpleValue = 2

	sessionStatus = 1
	sessionStart  = 1 // a value of the status
)

// event begins an Event. Step 0 is the default and is left out.
func event(at time.Time, step int64) []byte {
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(at.UnixNano())/1e9))
	if step == 0 {
		return b
	}
	b = protowire.AppendTag(b, eventStep, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(step))
}

// appendField appends a field that is a text or a message.
func appendField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// summary encodes the values of a Summary.
func summary(scalars []Scalar) []byte {
	var b []byte
	for _, s := range scalars {
		value := appendField(nil, valueTag, []byte(s.Tag))
		value = protowire.AppendTag(value, valueSimpleValue, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(s.Value)))
		b = appendField(b, summaryValue, value)
	}
	return b
}
