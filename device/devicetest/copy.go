package devicetest

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// copying is a backend whose memory is reached by copies.
type copying interface {
	device.Backend
	device.Copier
}

var copyChecks = []check{
	{"copy_inside_a_block", withCopier(func(t *testing.T, b copying) {
		p := alloc(t, b, 4096)
		write(t, b, p, filled(4096, 1))
		require.NoError(t, b.CopyIn(unsafe.Add(p, 1000), filled(96, 2), device.DefaultStream))
		require.NoError(t, b.Zero(unsafe.Add(p, 2000), 100, device.DefaultStream))
		want := filled(4096, 1)
		copy(want[1000:], filled(96, 2))
		copy(want[2000:], filled(100, 0))
		assert.Equal(t, want, read(t, b, p, 4096))
		assert.Equal(t, want[990:2010], read(t, b, unsafe.Add(p, 990), 1020))
	})},
	{"copy_on_the_device", withCopier(func(t *testing.T, b copying) {
		from, to := alloc(t, b, 1<<20), alloc(t, b, 1<<20)
		write(t, b, from, filled(1<<20, 7))
		require.NoError(t, b.CopyOn(unsafe.Add(to, 64), from, 1<<20-128, device.DefaultStream))
		want := filled(1<<20, 7)
		copy(want, filled(64, 0))
		copy(want[1<<20-64:], filled(64, 0))
		assert.Equal(t, want, read(t, b, to, 1<<20))
	})},
	{"source_of_a_copy_may_change", withCopier(func(t *testing.T, b copying) {
		for _, size := range []uint64{64, 4096, 1 << 20} {
			p := alloc(t, b, size)
			for i := range 100 { // more than a backend makes at the same time
				content := filled(size/64, byte(i))
				require.NoError(t, b.CopyIn(unsafe.Add(p, i%64*int(size/64)), content, device.DefaultStream))
				clear(content)
			}
			var want []byte
			for i := range 64 {
				last := i + 64
				if last >= 100 {
					last = i
				}
				want = append(want, filled(size/64, byte(last))...)
			}
			assert.Equal(t, want, read(t, b, p, size))
		}
	})},
	{"copies_come_before_later_work_of_streams", withCopier(func(t *testing.T, b copying) {
		streams, ok := b.(device.StreamQueue)
		if !ok {
			t.Skipf("backend %s is no device.StreamQueue", b.Name())
		}
		s, err := streams.CreateStream()
		require.NoError(t, err)
		from, to := alloc(t, b, 64), alloc(t, b, 64)
		for i := range 100 {
			require.NoError(t, b.CopyIn(from, filled(64, byte(i)), device.DefaultStream))
			require.NoError(t, b.CopyOn(to, from, 64, s))
			got := filled(64, 0xff)
			require.NoError(t, b.CopyOut(got, to, s))
			require.Equal(t, filled(64, byte(i)), got)
		}
		require.NoError(t, streams.FreeStream(s))
	})},
	{"late_read_is_of_its_place_in_the_stream", withCopier(func(t *testing.T, b copying) {
		late, ok := b.(device.LateReader)
		if !ok {
			t.Skipf("backend %s is no device.LateReader", b.Name())
		}
		p := alloc(t, b, 4096)
		var waits []func() ([]byte, error)
		for i := range 200 { // more than a backend makes at the same time
			require.NoError(t, b.CopyIn(p, filled(4096, byte(i)), device.DefaultStream))
			wait, err := late.ReadLater(unsafe.Add(p, 96), 1000, device.DefaultStream)
			require.NoError(t, err)
			waits = append(waits, wait)
		}
		for i, wait := range waits {
			if i%3 == 0 { // nobody has to wait
				continue
			}
			got, err := wait()
			require.NoError(t, err)
			require.Equalf(t, filled(1000, byte(i)), got, "read %d", i)
		}
		_, err := late.ReadLater(unsafe.Pointer(new([64]byte)), 64, device.DefaultStream)
		assert.Error(t, err)
	})},
	{"copy_of_nothing", withCopier(func(t *testing.T, b copying) {
		p := alloc(t, b, 64)
		require.NoError(t, b.CopyIn(p, nil, device.DefaultStream))
		require.NoError(t, b.CopyOut(nil, p, device.DefaultStream))
		require.NoError(t, b.CopyOn(p, p, 0, device.DefaultStream))
		require.NoError(t, b.Zero(p, 0, device.DefaultStream))
	})},
	{"copy_of_foreign_memory_is_an_error", withCopier(func(t *testing.T, b copying) {
		p, foreign := alloc(t, b, 64), unsafe.Pointer(new([64]byte))
		assert.Error(t, b.CopyIn(foreign, filled(64, 1), device.DefaultStream))
		assert.Error(t, b.CopyOut(filled(64, 1), foreign, device.DefaultStream))
		assert.Error(t, b.CopyOn(p, foreign, 64, device.DefaultStream))
		assert.Error(t, b.CopyOn(foreign, p, 64, device.DefaultStream))
		assert.Error(t, b.Zero(foreign, 64, device.DefaultStream))
		assert.True(t, isZero(read(t, b, p, 64)))
	})},
}

// withCopier turns a check of copies into a check of any backend, which is skipped for backends
// that do not copy.
func withCopier(run func(t *testing.T, b copying)) func(*testing.T, device.Backend) {
	return func(t *testing.T, b device.Backend) {
		c, ok := b.(copying)
		if !ok {
			t.Skipf("backend %s is no device.Copier", b.Name())
		}
		run(t, c)
	}
}
