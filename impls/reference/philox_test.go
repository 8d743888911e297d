package reference

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The known answers of the Random123 library, version 1.09, for philox4x32 with 10
// rounds.
func TestPhilox(t *testing.T) {
	t.Parallel()
	const most = 0xffffffff
	tests := []struct {
		name    string
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{"zeros", [4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{"ones", [4]uint32{most, most, most, most}, [2]uint32{most, most}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			"digits of pi", [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, philox(tt.counter, tt.key))
		})
	}
}
