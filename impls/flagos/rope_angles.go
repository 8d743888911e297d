package flagos

import (
	"bytes"
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/layers"
)

// angles is a table of the cosines and sines of some positions. For interleaved pairs sin holds the
// factors of the partners: they have the signs of the rotation, and for the transposed rotation the
// sines of partners are exchanged.
type angles struct {
	cos, sin []float32
	d2       int
	buf      []float32 // scratch for the heads of a step, when they are narrow
}

func (t *angles) row(i int) (cos, sin []float32) {
	return t.cos[i*t.d2:][:t.d2], t.sin[i*t.d2:][:t.d2]
}

// set fills row i for a position.
func (t *angles) set(c *rotation, i, position int) {
	cos, sin := t.row(i)
	theta := c.freqs.Row(position)
	half := t.d2 / 2
	switch {
	case c.interleaved:
		layers.SinCos(sin, cos, theta)
		for i := 1; i < len(sin); i += 2 {
			if c.backward {
				sin[i-1], sin[i] = sin[i], -sin[i-1]
			} else {
				sin[i-1] = -sin[i-1]
			}
		}
	case bytes.Equal(bytesOf(theta[:half]), bytesOf(theta[half:])):
		layers.SinCos(sin[:half], cos[:half], theta[:half])
		copy(sin[half:], sin[:half])
		copy(cos[half:], cos[:half])
	default:
		layers.SinCos(sin, cos, theta)
	}
}

func bytesOf(s []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
}
