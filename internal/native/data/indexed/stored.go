package indexed

import "encoding/binary"

// Load fills dst with the ids in b, which has width bytes for each.
func Load(dst []int32, b []byte, width int) {
	switch width {
	case 1:
		for i, v := range b[:len(dst)] {
			dst[i] = int32(v)
		}
	case 2:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
}

// Append appends ids, each of which width bytes can hold, to dst.
func Append(dst []byte, ids []int32, width int) []byte {
	for _, id := range ids {
		switch width {
		case 1:
			dst = append(dst, byte(id))
		case 2:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(id))
		default:
			dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
		}
	}
	return dst
}
