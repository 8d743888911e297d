//go:build invariants

package model

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
			a := &arena{backend: cpu.New()}
			x := a.new(tensor.F32, 3)
			require.NoError(t, a.err)
			tensor.Data[float32](x)[2] = 1
			a.guards.check()
			place := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(tensor.Data[float32](x))), at))
			was := *place
			*place = 0
			assert.PanicsWithValue(t, fmt.Sprintf("BUG: model: a tensor of 12 bytes was written at byte %d", at), a.guards.check)
			*place = was
			assert.NoError(t, a.close())
		})
	}
}
