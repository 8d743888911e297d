package safetensors_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// described is what a reader says of a file: its tensors as dtype, shape and checksum by name, nil
// for a file that it refuses.
type described map[string]string

// pythonReader describes each file that its arguments name.
const pythonReader = `
import hashlib, json, sys
from safetensors import deserialize
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as f:
            print(json.dumps({n: f"{t['dtype']} {t['shape']} {hashlib.sha256(bytes(t['data'])).hexdigest()}" for n, t in deserialize(f.read())}))
    except Exception:
        print("null")
`

func describe(t *testing.T, b []byte) described {
	t.Helper()
	f, err := parse(b)
	if err != nil {
		return nil
	}
	all := described{}
	for _, name := range f.Names() {
		data, err := f.Bytes(name)
		if err != nil {
			return nil
		}
		info, _ := f.Info(name)
		sum := sha256.Sum256(data)
		shape := strings.ReplaceAll(fmt.Sprint([]int(info.Shape)), " ", ", ")
		all[name] = fmt.Sprintf("%s %s %s", strings.ToUpper(info.DType.String()), shape, hex.EncodeToString(sum[:]))
	}
	return all
}

// Python's own reader makes the same of files as this one: it refuses the same, and finds the same
// tensors. It also reads I8 and other types that no op has.
func TestPythonReadsTheSame(t *testing.T) {
	t.Parallel()
	python := primustest.Python(t, "safetensors")
	headers := map[string]int{
		`{}`: 0, `{} `: 0, `[]`: 0, `null`: 0, ``: 0, `{"a":1}`: 0, `{"a":`: 0,
		`{"__metadata__":{"k":"v"}}`: 0, `{"__metadata__":{"k":1}}`: 0, `{"__metadata__":[]}`: 0,
	}
	for _, dtype := range []string{"F32", "F64", "F16", "BF16", "U8", "I16", "I32", "I64", "F33", "", "f32"} {
		for _, shape := range []string{"[]", "[1]", "[2,3]", "[0,7]", "[-1]", "[1.5]", `["1"]`, "[4294967296,4294967296]", "1"} {
			for _, bytes := range []int{0, 1, 2, 4, 6, 8, 12, 24, 48} {
				for _, begin := range []int{0, 1} {
					headers[fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}}`, dtype, shape, begin, bytes)] = bytes
				}
			}
		}
	}
	for _, second := range []string{"[4,8]", "[0,4]", "[8,12]", "[4,9]", "[8,4]"} {
		headers[`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":`+second+`}}`] = 8
	}
	dir := t.TempDir()
	args := []string{"-c", pythonReader}
	var texts []string
	for header, n := range headers {
		name := filepath.Join(dir, fmt.Sprint(len(texts)))
		require.NoError(t, os.WriteFile(name, file(header, n), 0o600))
		args, texts = append(args, name), append(texts, header)
	}
	out, err := exec.Command(python, args...).Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(texts))
	accepted := 0
	for i, line := range lines {
		var want described
		require.NoError(t, json.Unmarshal([]byte(line), &want))
		got := describe(t, file(texts[i], headers[texts[i]]))
		assert.Equal(t, want, got, texts[i])
		if got != nil {
			accepted++
		}
	}
	assert.Greater(t, accepted, 20)
}
