package finite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An element is found at every place of slices of every length and alignment, and numbers that are
// finite are not.
func TestIndex16(t *testing.T) {
	t.Parallel()
	for _, format := range []struct{ exponent, most uint16 }{{0x7f80, 0xff7f}, {0x7c00, 0xfbff}} {
		for begin := range 4 {
			for length := range 40 {
				s := make([]uint16, begin+length)[begin:]
				for i := range s {
					s[i] = format.most // the finite number farthest from 0, and negative
				}
				require.Equal(t, -1, index16(s, format.exponent))
				for i := range s {
					for _, v := range []uint16{format.exponent, format.exponent | 0x8000, 0x7fff} {
						old := s[i]
						s[i] = v
						require.Equal(t, i, index16(s, format.exponent), fmt.Sprintf("%x at %d of %d", v, i, length))
						s[i] = old
					}
				}
			}
		}
	}
}

func BenchmarkIndex16(b *testing.B) {
	s := make([]uint16, 1<<18)
	b.SetBytes(2 << 18)
	for b.Loop() {
		index16(s, 0x7f80)
	}
}

func BenchmarkIndex32(b *testing.B) {
	s := make([]float32, 1<<18)
	b.SetBytes(4 << 18)
	for b.Loop() {
		index32(s)
	}
}
