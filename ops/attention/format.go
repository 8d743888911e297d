package attention

import "fmt"

// QKVFormat is the order of the axes of a query, key or value tensor.
type QKVFormat uint8

// The formats: s sequence, b batch, h heads, d head dimension, t packed tokens.
const (
	QKVFormatUnspecified QKVFormat = iota
	SBHD
	BSHD
	THD
)

// String returns the format in TransformerEngine's spelling.
func (f QKVFormat) String() string {
	switch f {
	case SBHD:
		return "sbhd"
	case BSHD:
		return "bshd"
	case THD:
		return "thd"
	default:
		return fmt.Sprintf("qkv_format(%d)", uint8(f))
	}
}
