package torchfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/meter"
)

// Limits of a pickle. Its instructions may use a value as often as they like, so that what is made
// of values has limits of its own.
const (
	maxPickle = 64 << 20 // bytes
	maxSteps  = 1 << 24  // instructions
	maxClass  = 512      // bytes of the name of a class
	maxDims   = 32       // of a tensor
	maxChunks = 1 << 20  // of all tensors
)

type (
	class string // module and name

	// object is an instance of a class that was not made: its parts alone.
	object struct {
		class class
		args  tuple
		state any
	}
	tuple []any
	list  struct{ items []any }
	dict  struct{ pairs [][2]any } // in the order of the file

	persistent struct{ id any }
	mark       struct{}
)

// allowed matches the classes and functions that checkpoints of PyTorch, TorchTitan and Megatron
// name.
var allowed = regexp.MustCompile(`^(` + strings.Join([]string{
	`torch\.(Size|device|strided|\w*Storage|b?float\w*|u?int\d+|bool|half|double|long|short|complex\d+)`,
	`torch\._utils\._rebuild_(tensor_v2|tensor_v3|parameter|parameter_with_state)`,
	`torch\.storage\.(Untyped|Typed)Storage`,
	`torch\.serialization\._get_layout`,
	`torch\.distributed\._shard\.[\w.]*`,
	`torch\.distributed\.checkpoint\.(metadata|filesystem)\.\w+`,
	`collections\.OrderedDict`,
	`argparse\.Namespace`,
	`pathlib\.\w*Path`,
	`(builtins|__builtin__)\.(set|frozenset|bytearray|complex)`,
	`numpy\.(_?core\.multiarray\._reconstruct|_?core\.multiarray\.scalar|ndarray|dtype)`,
	`(_codecs\.encode|_io\.BytesIO|signal\.Signals)`,
	`megatron\.[\w.]*`,
}, "|") + `)$`)

// newMeter returns the budget of a pickle, which takes less than a second.
func newMeter(ctx context.Context) *meter.Meter {
	return meter.New(ctx, "the pickle", "save the tensors alone, without other objects", meter.Budget{Bytes: maxPickle, Steps: maxSteps, Unit: "instructions"})
}

// unpickle returns the value that a pickle describes.
func unpickle(text []byte, budget *meter.Meter) (v any, err error) {
	m := &machine{rest: text, memo: map[int]any{}}
	for v == nil && err == nil {
		if err = budget.Spend(1); err == nil {
			v, err = m.step()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d of the pickle: %w", len(text)-len(m.rest), err)
	}
	return v.(stopped).value, nil
}

// machine is the stack machine of the format.
type machine struct {
	rest  []byte
	stack []any
	memo  map[int]any
}

// stopped is the end of a pickle.
type stopped struct{ value any }

var (
	errShort = errors.New("given the end of the file, want more of the pickle: the file is cut short")
	errStack = errors.New("given an instruction without its operands, want a pickle of Python")
)

func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.rest)) {
		return nil, errShort
	}
	var part []byte
	part, m.rest = m.rest[:n], m.rest[n:]
	return part, nil
}

// number reads a little-endian number of n bytes.
func (m *machine) number(n uint64) (uint64, error) {
	part, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var all [8]byte
	copy(all[:], part)
	return binary.LittleEndian.Uint64(all[:]), nil
}

// sized reads bytes after their number, which takes n bytes.
func (m *machine) sized(n uint64) ([]byte, error) {
	size, err := m.number(n)
	if err != nil {
		return nil, err
	}
	return m.take(size)
}

func (m *machine) line() (string, error) {
	i := slices.Index(m.rest, '\n')
	if i < 0 {
		return "", errShort
	}
	part, err := m.take(uint64(i) + 1)
	return strings.TrimSuffix(string(part), "\n"), err
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// pop returns the last n values.
func (m *machine) pop(n int) ([]any, error) {
	at := len(m.stack) - n
	if at < 0 || slices.Contains(m.stack[at:], any(mark{})) {
		return nil, errStack
	}
	values := slices.Clone(m.stack[at:])
	m.stack = m.stack[:at]
	return values, nil
}

// popMark returns the values after the last mark.
func (m *machine) popMark() ([]any, error) {
	for n := range m.stack {
		if m.stack[len(m.stack)-1-n] == any(mark{}) {
			values, err := m.pop(n)
			m.stack = m.stack[:len(m.stack)-1]
			return values, err
		}
	}
	return nil, errStack
}

func (m *machine) top() any {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}
