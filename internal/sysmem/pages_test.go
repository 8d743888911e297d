package sysmem

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Memory of any length and place is asked for, and stays what it is.
func TestPreferHugePages(t *testing.T) {
	t.Parallel()
	memory := make([]byte, 9<<20)
	memory[1] = 1
	for _, n := range []int{0, 1, 4096, 2 << 20, 3 << 20, 9<<20 - 1} {
		for _, at := range []int{0, 1} {
			PreferHugePages(memory[at : at+n])
		}
	}
	PreferHugePages(nil)
	assert.Equal(t, append([]byte{0, 1}, make([]byte, 9<<20-2)...), memory)
}
