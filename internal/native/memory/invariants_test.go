//go:build invariants

package memory

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/tensor"
)

func TestWritesBesideATensorAreFound(t *testing.T) {
	t.Parallel()
	for _, at := range []int{-1, -guardBytes, 12, 12 + guardBytes - 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			a := &Arena{Backend: cpu.New()}
			x := a.New(tensor.F32, 3)
			require.NoError(t, a.Err)
			tensor.Data[float32](x)[2] = 1
			a.Check()
			place := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(tensor.Data[float32](x))), at))
			was := *place
			*place = 0
			assert.PanicsWithValue(t, fmt.Sprintf("BUG: memory: a tensor of 12 bytes was written at byte %d", at), a.Check)
			*place = was
			assert.NoError(t, a.Close())
		})
	}
}
