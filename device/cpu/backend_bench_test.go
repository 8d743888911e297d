package cpu

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

// BenchmarkMemory allocates a block, writes a byte to each page of it and frees it: with a Backend,
// and for comparison with the operating system alone.
func BenchmarkMemory(b *testing.B) {
	sources := []struct {
		name  string
		alloc func(uint64) (unsafe.Pointer, error)
		free  func(unsafe.Pointer, uint64) error
	}{
		{name: "system", alloc: systemPager{}.acquire, free: systemPager{}.release},
		{name: "backend"},
	}
	for _, size := range []uint64{256, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		for _, source := range sources {
			b.Run(fmt.Sprintf("size=%d/from=%s", size, source.name), func(b *testing.B) {
				alloc, free := source.alloc, source.free
				if alloc == nil {
					backend := New()
					b.Cleanup(func() { closeBackend(b, backend) })
					alloc = backend.Alloc
					free = func(p unsafe.Pointer, _ uint64) error { return backend.Free(p) }
				}
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for b.Loop() {
					p, err := alloc(size)
					if err != nil {
						b.Fatal(err)
					}
					content := unsafe.Slice((*byte)(p), size)
					for i := 0; i < len(content); i += 4096 {
						content[i] = 1
					}
					if err := free(p, size); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkStream submits a function, records an event after it and waits.
func BenchmarkStream(b *testing.B) {
	backend := New()
	b.Cleanup(func() { closeBackend(b, backend) })
	e, err := backend.CreateEvent()
	if err != nil {
		b.Fatal(err)
	}
	work := func() {}
	b.ReportAllocs()
	for b.Loop() {
		if err := backend.Submit(device.DefaultStream, work); err != nil {
			b.Fatal(err)
		}
		if err := backend.RecordEvent(e, device.DefaultStream); err != nil {
			b.Fatal(err)
		}
		if err := backend.SyncEvent(e); err != nil {
			b.Fatal(err)
		}
	}
}

func closeBackend(b *testing.B, backend *Backend) {
	if err := backend.Close(); err != nil {
		b.Error(err)
	}
}
