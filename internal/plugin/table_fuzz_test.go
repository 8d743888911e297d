//go:build unix

package plugin

import (
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/vendors/abi"

	"github.com/primus-fl/primus/internal/primustest"
)

// image is the memory of a library for readDescription, which is not Go's. Pointers that are small
// are offsets into it, so that tables hang together and also point to nowhere.
type image []byte

func newImage(t testing.TB) image {
	t.Helper()
	m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(m)) })
	return m
}

func (m image) base() uintptr { return uintptr(unsafe.Pointer(&m[0])) }

// load fills the image. The words at these places are pointers.
func (m image) load(data []byte, pointers []int) {
	clear(m)
	copy(m, data)
	for _, at := range pointers {
		word := m[8*at:]
		if w := binary.LittleEndian.Uint64(word); w != 0 && w < uint64(len(m)) {
			binary.LittleEndian.PutUint64(word, uint64(m.base())+w)
		}
	}
}

// The image of a right description: the plugin at 0, its list of two ops at 64, the ops at 128 and
// 256, texts from 512, types of devices at 768.
const (
	listAt, opAt, secondAt, textAt, devicesAt = 64, 128, 256, 512, 768
)

// pointersOf are the places of pointers in that image, in words.
func pointersOf() []int {
	at := []int{2, 3, 4, listAt / 8, listAt/8 + 1}
	for _, op := range []int{opAt / 8, secondAt / 8} {
		at = append(at, op+1, op+2, op+3, op+10)
	}
	return at
}

func rightImage() []byte {
	data := make([]byte, 1024)
	word := func(at int, v uint64) { binary.LittleEndian.PutUint64(data[at:], v) }
	half := func(at int, v uint32) { binary.LittleEndian.PutUint32(data[at:], v) }
	half(0, uint32(unsafe.Sizeof(abi.Plugin{})))
	half(4, abi.Major)
	half(12, 2)
	word(16, textAt)
	word(24, textAt+32)
	word(32, listAt)
	for i, op := range []int{opAt, secondAt} {
		word(listAt+8*i, uint64(op))
		half(op, uint32(unsafe.Sizeof(abi.Op{})))
		half(op+4, abi.KindVendor)
		word(op+8, textAt+64)
		word(op+16, textAt+96)
		word(op+24, textAt+128)
		half(op+32, 100)
		word(op+64, 1<<40)
		word(op+80, devicesAt)
		half(op+88, 2)
	}
	for i, text := range []string{"acme_ops", "1.2.0", "rmsnorm_fwd", "vendor.acme", "acme"} {
		copy(data[textAt+32*i:], text)
	}
	half(devicesAt, abi.DeviceCPU)
	half(devicesAt+4, abi.DeviceOpenCL)
	return data
}

func TestReadDescription(t *testing.T) {
	t.Parallel()
	m := newImage(t)
	m.load(rightImage(), pointersOf())
	d, err := readDescription(m.base(), false)
	require.NoError(t, err)
	assert.Equal(t, "acme_ops", d.name)
	assert.Equal(t, "1.2.0", d.version)
	require.Len(t, d.ops, 2)
	assert.Equal(t, entry{op: "rmsnorm_fwd", implID: "vendor.acme", vendor: "acme", kind: abi.KindVendor, priority: 100, run: 1 << 40, devices: []device.Type{device.TypeCPU, device.TypeOpenCL}}, d.ops[0])
}

// Whatever a description says, reading it ends with a description or an error.
func FuzzReadDescription(f *testing.F) {
	f.Add(rightImage())
	for _, at := range []int{0, 4, 12, 16, 24, 32, listAt, opAt, opAt + 8, opAt + 36, opAt + 80, opAt + 88, devicesAt} {
		for _, v := range []uint64{0, 1, 8, 0xffffffff, 1 << 40, 0xdeadbeefdeadbeef, ^uint64(0)} {
			data := rightImage()
			binary.LittleEndian.PutUint64(data[at&^7:], v)
			f.Add(data)
		}
	}
	f.Add([]byte(strings.Repeat("x", 4096)))
	pointers := pointersOf()
	f.Fuzz(func(t *testing.T, data []byte) {
		defer primustest.Measured(t, len(data))()
		m := newImage(t)
		m.load(data, pointers)
		d, err := readDescription(m.base(), false)
		if err != nil {
			assert.Less(t, len(err.Error()), 4096) // it may quote long names, with up to four bytes for each
			return
		}
		assert.NotEmpty(t, d.name)
		assert.LessOrEqual(t, len(d.ops), maxOps)
		for _, o := range d.ops {
			assert.NotEmpty(t, o.op)
			assert.NotZero(t, o.run)
		}
	})
}
