package wandb_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/internal/rundir/wandb"
)

// records reads a file by the description of LevelDB's log format and returns its records.
func records(t *testing.T, file []byte) [][]byte {
	t.Helper()
	require.Equal(t, ":W&B\xe1\xbe\x00", string(file[:7]))
	var all [][]byte
	var part []byte
	begun := false // with a part, which may be empty at the end of a block
	for at := 7; at < len(file); {
		if room := 32768 - at%32768; room < 7 {
			assert.Equal(t, make([]byte, room), file[at:at+room])
			at += room
			continue
		}
		sum, n, kind := binary.LittleEndian.Uint32(file[at:]), int(binary.LittleEndian.Uint16(file[at+4:])), file[at+6]
		require.LessOrEqual(t, at%32768+7+n, 32768, "a part is within a block")
		data := file[at+7 : at+7+n]
		assert.Equal(t, crc32.ChecksumIEEE(append([]byte{kind}, data...)), sum)
		at += 7 + n
		require.Equal(t, begun, kind == 3 || kind == 4, "kind %d", kind)
		part, begun = append(part, data...), true
		if kind == 1 || kind == 4 {
			all, part, begun = append(all, part), nil, false
		}
	}
	assert.False(t, begun)
	return all
}

// fields returns the fields of a message, bytes as they are and numbers.
func fields(t *testing.T, message []byte) (texts map[int][]string, numbers map[int]uint64) {
	t.Helper()
	texts, numbers = map[int][]string{}, map[int]uint64{}
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		require.Positive(t, n)
		message = message[n:]
		if kind == protowire.VarintType {
			numbers[int(field)], n = protowire.ConsumeVarint(message)
		} else {
			var text []byte
			text, n = protowire.ConsumeBytes(message)
			texts[int(field)] = append(texts[int(field)], string(text))
		}
		require.Positive(t, n)
		message = message[n:]
	}
	return texts, numbers
}

// values returns a list of keys and JSON values.
func values(t *testing.T, list []string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, item := range list {
		texts, _ := fields(t, []byte(item))
		var v any
		require.NoError(t, json.Unmarshal([]byte(texts[16][0]), &v))
		all[texts[1][0]] = v
	}
	return all
}

func TestWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := wandb.Create(wandb.Settings{Dir: dir, Project: "p", Name: "n", Config: map[string]any{"lr": 0.5, "long": strings.Repeat("x", 100_000)}})
	require.NoError(t, err)
	const steps = 3000
	for i := range steps {
		require.NoError(t, w.Log(int64(i+1), tensorboard.Scalar{Tag: "train/loss", Value: float64(steps - i)}))
	}
	require.NoError(t, w.Close(false))
	require.NoError(t, w.Close(false))
	found, err := filepath.Glob(filepath.Join(dir, "wandb", "offline-run-*-*", "run-*.wandb"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, w.Dir(), filepath.Dir(found[0]))
	id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "run-"), ".wandb")
	assert.True(t, strings.HasSuffix(w.Dir(), "-"+id))
	file, err := os.ReadFile(found[0])
	require.NoError(t, err)
	all := records(t, file)
	require.Len(t, all, 2+steps+2)
	for i, r := range all {
		_, numbers := fields(t, r)
		assert.Equal(t, uint64(i+1), numbers[1], "the number of a record")
	}

	header, _ := fields(t, all[0])
	assert.Contains(t, header, 21)
	record, _ := fields(t, all[1])
	run, _ := fields(t, []byte(record[17][0]))
	assert.Equal(t, []string{id}, run[1])
	assert.Equal(t, []string{"p"}, run[3])
	assert.Equal(t, []string{"n"}, run[8])
	config, _ := fields(t, []byte(run[4][0]))
	assert.InDelta(t, 0.5, values(t, config[1])["lr"], 0)
	assert.Len(t, values(t, config[1])["long"], 100_000)

	record, _ = fields(t, all[1001])
	history, _ := fields(t, []byte(record[2][0]))
	got := values(t, history[1])
	assert.InDelta(t, 1000, got["_step"], 0)
	assert.InDelta(t, steps-999, got["train/loss"], 0)
	assert.Contains(t, got, "_timestamp")

	record, _ = fields(t, all[len(all)-2])
	summary, _ := fields(t, []byte(record[3][0]))
	assert.InDelta(t, 1, values(t, summary[1])["train/loss"], 0)
	record, _ = fields(t, all[len(all)-1])
	assert.Contains(t, record, 18)
}

func TestWriterErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := wandb.Create(wandb.Settings{Dir: file})
	require.ErrorContains(t, err, "wandb: mkdir")
	w, err := wandb.Create(wandb.Settings{Dir: t.TempDir()})
	require.NoError(t, err)
	require.ErrorContains(t, w.Log(1, tensorboard.Scalar{Tag: "x", Value: 0.0}, tensorboard.Scalar{Tag: "nan", Value: nan()}), "step 1: nan: json: unsupported value")
	require.NoError(t, w.Close(true))
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}
