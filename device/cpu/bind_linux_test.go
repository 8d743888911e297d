package cpu

import (
	"errors"
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestBindToNode(t *testing.T) {
	t.Parallel()
	const length = 1 << 16
	p, err := systemPager{}.acquire(length)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, systemPager{}.release(p, length)) })

	node := New().nodes()[0]
	if err = bindToNode(p, length, node); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("mbind is not available here: %v", err)
	}
	require.NoError(t, err)

	var policy int32
	var mask [1024 / bits.UintSize]uint
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&policy)), uintptr(unsafe.Pointer(&mask)),
		uintptr(len(mask)*bits.UintSize), uintptr(p), unix.MPOL_F_ADDR, 0)
	require.Zero(t, errno)
	assert.EqualValues(t, unix.MPOL_PREFERRED, policy)
	assert.Equal(t, uint(1)<<(node%bits.UintSize), mask[node/bits.UintSize])
}

func TestBindToMissingNode(t *testing.T) {
	t.Parallel()
	const length = 1 << 16
	p, err := systemPager{}.acquire(length)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, systemPager{}.release(p, length)) })
	assert.Error(t, bindToNode(p, length, maxNode))
}
