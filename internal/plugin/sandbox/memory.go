package sandbox

import (
	"fmt"
	"math/bits"
	"os"
)

// memory is a file without a name whose pages two processes share.
type memory struct {
	file *os.File
	data []byte
}

// tensorAlign is the alignment of tensors in shared memory.
const tensorAlign = 64

// aligned returns n, rounded up to where a tensor may begin.
func aligned(n int) int { return (n + tensorAlign - 1) &^ (tensorAlign - 1) }

// reserve makes room for n bytes. The memory may move.
func (m *memory) reserve(n int) error {
	if n <= len(m.data) {
		return nil
	}
	size := 1 << max(bits.Len(uint(n-1)), 16)
	if err := m.file.Truncate(int64(size)); err != nil {
		return fmt.Errorf("get %d bytes of shared memory: %w", size, err)
	}
	return m.attach(size)
}

// attach maps the first bytes of the file. The file of a sender is as long as it says.
func (m *memory) attach(size int) error {
	if size == len(m.data) {
		return nil
	}
	info, err := m.file.Stat()
	if err != nil {
		return fmt.Errorf("look at shared memory: %w", err)
	}
	if size < 0 || int64(size) > info.Size() {
		return fmt.Errorf("shared memory has %d bytes, not %d", info.Size(), size)
	}
	if m.data, err = remap(m.file, m.data, size); err != nil {
		return fmt.Errorf("map %d bytes of shared memory: %w", size, err)
	}
	return nil
}

func (m *memory) close() {
	_, _ = remap(m.file, m.data, 0)
	m.data = nil
	m.file.Close()
}
