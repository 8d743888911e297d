package flagos

import (
	"encoding/binary"
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// maskedLogit is the value of a masked logit. A row whose largest logit it is gives zeros.
const maskedLogit = -10000

// softmaxMask changes the logits of a row. The zero softmaxMask changes nothing.
type softmaxMask struct {
	bytes  []uint8     // 1 where a logit is masked
	added  host.Matrix // without rows unless a mask is added
	pitch  int         // of bytes
	heads  int         // that share a row
	rows   int         // of a matrix
	shared bool        // by the whole batch
}

// maskOf returns the mask of a call.
func maskOf(v *host.Views, a softmax.ScaledMaskedSoftmaxForwardArgs) softmaxMask {
	shape := a.Input.Shape()
	m := softmaxMask{heads: shape[1], rows: shape[2], shared: a.Mask.Shape()[0] == 1}
	d := a.Mask.DType()
	if d != tensor.U8 && d != tensor.Bool {
		m.added = v.Matrix("mask", a.Mask)
		return m
	}
	if !v.OnHost("mask", a.Mask) {
		return m
	}
	pitch, ok := host.PitchOf(a.Mask)
	switch {
	case !ok:
		v.Decline("strides %v of mask %v, this impl serves dense rows of one pitch", a.Mask.Strides(), a.Mask.Shape())
	case d == tensor.U8:
		m.bytes = tensor.Data[uint8](a.Mask)
	default:
		bools := tensor.Data[bool](a.Mask)
		m.bytes = unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(bools))), len(bools))
	}
	m.pitch = pitch
	return m
}

// row returns the row of the mask that belongs to a row of the scores.
func (m *softmaxMask) row(r int) int {
	within := r % m.rows
	if m.shared {
		return within
	}
	return r/(m.heads*m.rows)*m.rows + within
}

// softmaxMaskChunk is how many elements of a narrow mask are widened at a time.
const softmaxMaskChunk = 512

// apply changes the logits of a row.
func (m *softmaxMask) apply(z []float32, row int, buf []float32) {
	switch {
	case m.bytes != nil:
		maskLogits(z, m.bytes[m.row(row)*m.pitch:][:len(z)])
	case m.added.Rows > 0:
		for at := 0; at < len(z); at += softmaxMaskChunk {
			part := z[at:min(at+softmaxMaskChunk, len(z))]
			vector.Add(part, part, m.added.Piece(m.row(row), at, len(part), buf))
		}
	}
}

// hides reports whether a row with this largest logit, which is not NaN, gives zeros.
func (m *softmaxMask) hides(most float32) bool { return m.bytes != nil && most == maskedLogit }

// maskLogits reads eight bytes at a time: most often they are equal.
func maskLogits(z []float32, mask []uint8) {
	const ones = 0x0101010101010101
	for len(z) >= 8 {
		switch binary.LittleEndian.Uint64(mask) {
		case 0:
		case ones:
			for i := range z[:8] {
				z[i] = maskedLogit
			}
		default:
			maskEach(z[:8], mask)
		}
		z, mask = z[8:], mask[8:]
	}
	maskEach(z, mask)
}

func maskEach(z []float32, mask []uint8) {
	for i := range z {
		if mask[i] == 1 {
			z[i] = maskedLogit
		}
	}
}
