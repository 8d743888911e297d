package philox_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/philox"
	"github.com/primus-fl/primus/internal/random"
)

func TestAtLeastAgreesWithRandomBits(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 60 {
			seed, counter, threshold := r.Uint64(), r.Uint64(), r.Uint32()
			switch i % 6 {
			case 1:
				counter = math.MaxUint64 - r.Uint64N(20) // the counter wraps around
			case 2:
				counter = 1<<32 - r.Uint64N(20) // its low half does
			case 3:
				threshold = 0
			case 4:
				threshold = math.MaxUint32
			case 5: // a number that is drawn
				threshold = random.Bits(seed, counter, 17)
			}
			bits := make([]uint32, 2+i%7)
			bits[len(bits)-1] = 0xabcdef
			philox.AtLeast(bits[:len(bits)-1], seed, counter, threshold)
			require.EqualValues(t, 0xabcdef, bits[len(bits)-1], "beside what was to be written")
			for n := range 32 * (len(bits) - 1) {
				want := random.Bits(seed, counter, uint64(n)) >= threshold
				require.Equal(t, want, bits[n/32]>>(n%32)&1 == 1, "bit %d, seed %x, counter %x, threshold %x", n, seed, counter, threshold)
			}
		}
		philox.AtLeast(nil, 1, 2, 3)
	})
}

func TestNumbersAreThoseOfPhilox(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 3))
		for n := range 140 {
			seed, counter, stream := r.Uint64(), r.Uint64(), r.Uint32()
			switch n % 4 {
			case 1:
				counter = math.MaxUint64 - r.Uint64N(20)
			case 2:
				counter, stream = 1<<32-r.Uint64N(20), 0
			}
			numbers := make([]uint32, n+1)
			numbers[n] = 0xabcdef
			philox.Numbers(numbers[:n], seed, counter, stream)
			require.EqualValues(t, 0xabcdef, numbers[n], "beside what was to be written")
			for i, got := range numbers[:n] {
				c := counter + uint64(i/4)
				want := random.Philox4x32([4]uint32{uint32(c), uint32(c >> 32), stream}, [2]uint32{uint32(seed), uint32(seed >> 32)})
				require.Equal(t, want[i%4], got, "number %d, seed %x, counter %x, stream %x", i, seed, counter, stream)
			}
		}
	})
}

func TestSelect(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 2))
		for n := range 70 {
			for _, first := range []int{0, 1, 2, 3, 7, 8, 31, 63, 64, 75} {
				x := make([]float32, n+2)
				bits := make([]uint32, philox.Words(first, n))
				for i := range bits {
					bits[i] = r.Uint32()
				}
				want := make([]float32, n+2)
				for i := range x {
					x[i], want[i] = r.Float32(), 0
					if at := first + i - 1; i > 0 && i <= n && bits[at/32]>>(at%32)&1 == 1 {
						want[i] = x[i]
					} else if i > 0 && i <= n && i%3 == 0 {
						x[i] = float32(math.NaN())
					}
				}
				want[0], want[n+1] = x[0], x[n+1]
				what := fmt.Sprintf("%d elements from bit %d", n, first)
				apart := make([]float32, n)
				philox.Select(apart, x[1:n+1], bits, first)
				require.Equal(t, want[1:n+1], apart, what)
				philox.Select(x[1:n+1], x[1:n+1], bits, first)
				require.Equal(t, want, x, what)
			}
		}
	})
}

func TestSelectWantsWholeOperands(t *testing.T) {
	t.Parallel()
	x := make([]float32, 64)
	require.Panics(t, func() { philox.Select(x[:3:3], x, make([]uint32, 3), 0) })
	require.Panics(t, func() { philox.Select(x, x, make([]uint32, 2), 0) })
}

func BenchmarkAtLeast(b *testing.B) {
	kerneltest.EachFeature(b, func(b *testing.B) {
		bits := make([]uint32, 128)
		b.SetBytes(int64(32 * len(bits)))
		for b.Loop() {
			philox.AtLeast(bits, 1, 2, 3)
		}
	})
}
