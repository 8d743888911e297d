package tensorboard_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// event is what a reader finds.
type event struct {
	time    float64
	step    int64
	version string
	start   bool
	scalars map[string]float32
}

// masked is the checksum of the format, written down another way than the writer's.
func masked(data []byte) uint32 {
	crc := uint64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return uint32((crc>>15 | crc<<17&0xffffffff) + 0xa282ead8)
}

// read parses an event file and checks every checksum.
func read(t *testing.T, file string) []event {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var events []event
	for len(text) > 0 {
		require.GreaterOrEqual(t, len(text), 16, "a whole record")
		n := binary.LittleEndian.Uint64(text)
		require.Equal(t, masked(text[:8]), binary.LittleEndian.Uint32(text[8:]), "checksum of the length")
		require.GreaterOrEqual(t, uint64(len(text)), 16+n, "a whole record")
		data := text[12 : 12+n]
		require.Equal(t, masked(data), binary.LittleEndian.Uint32(text[12+n:]), "checksum of the data")
		events = append(events, parse(t, data))
		text = text[16+n:]
	}
	return events
}

// fields calls f for every field of a message.
func fields(t *testing.T, data []byte, f func(number protowire.Number, bits uint64, content []byte)) {
	t.Helper()
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		require.NoError(t, protowire.ParseError(n))
		data = data[n:]
		var bits uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(data)
		case protowire.Fixed32Type:
			var short uint32
			short, n = protowire.ConsumeFixed32(data)
			bits = uint64(short)
		default:
			content, n = protowire.ConsumeBytes(data)
		}
		require.NoError(t, protowire.ParseError(n))
		data = data[n:]
		f(number, bits, content)
	}
}

func parse(t *testing.T, data []byte) event {
	t.Helper()
	e := event{scalars: map[string]float32{}}
	fields(t, data, func(number protowire.Number, bits uint64, content []byte) {
		switch number {
		case 1:
			e.time = math.Float64frombits(bits)
		case 2:
			e.step = int64(bits)
		case 3:
			e.version = string(content)
		case 5:
			fields(t, content, func(_ protowire.Number, _ uint64, value []byte) {
				tag := ""
				fields(t, value, func(number protowire.Number, bits uint64, content []byte) {
					switch number {
					case 1:
						tag = string(content)
					case 2:
						e.scalars[tag] = math.Float32frombits(uint32(bits))
					}
				})
			})
		case 7:
			fields(t, content, func(number protowire.Number, bits uint64, _ []byte) { e.start = number == 1 && bits == 1 })
		}
	})
	return e
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	require.NoError(t, err)
	return found
}

func TestWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tensorboard")
	w, err := tensorboard.Create(dir, 41)
	require.NoError(t, err)
	require.NoError(t, w.Scalars(41, tensorboard.Scalar{Tag: "train/loss", Value: 2.5}, tensorboard.Scalar{Tag: "train/lr", Value: 1e-3}))
	require.NoError(t, w.Scalars(42, tensorboard.Scalar{Tag: "train/loss", Value: math.Inf(1)}))
	require.Len(t, files(t, dir), 1)
	events := read(t, files(t, dir)[0])
	require.Len(t, events, 4, "all are there before Close")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())

	now := float64(time.Now().Unix())
	for _, e := range events {
		assert.InDelta(t, now, e.time, 60)
	}
	assert.Equal(t, "brain.Event:2", events[0].version)
	assert.True(t, events[1].start)
	assert.Equal(t, int64(41), events[1].step)
	assert.Equal(t, int64(41), events[2].step)
	assert.Equal(t, map[string]float32{"train/loss": 2.5, "train/lr": 1e-3}, events[2].scalars)
	assert.Equal(t, map[string]float32{"train/loss": float32(math.Inf(1))}, events[3].scalars)

	again, err := tensorboard.Create(dir, 43)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	assert.Len(t, files(t, dir), 2, "each session has a file of its own")
}

func TestWriterErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := tensorboard.Create(file, 1)
	require.ErrorContains(t, err, "tensorboard: ")

	w, err := tensorboard.Create(t.TempDir(), 1)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Error(t, w.Scalars(1))
}

// TestHead compares with the first bytes of every file that TensorFlow writes: a length of 24 and
// its checksum, the tag of the time, and behind that the version.
func TestHead(t *testing.T) {
	dir := t.TempDir()
	w, err := tensorboard.Create(dir, 1)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	text, err := os.ReadFile(files(t, dir)[0])
	require.NoError(t, err)
	assert.Equal(t, "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7fK\"\t", string(text[:13]))
	assert.Equal(t, "\x1a\x0dbrain.Event:2", string(text[21:36]))
}
