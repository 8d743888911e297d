package tensor_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
)

// exchanged is a tensor on its way between PyTorch and this process.
type exchanged struct {
	DType   string    `json:"dtype"`
	Struct  string    `json:"struct"`
	Shape   []int64   `json:"shape"`
	Strides []int64   `json:"strides"`
	Data    string    `json:"data"`
	Values  []float64 `json:"values"`
}

// TestDLPackWithTorch takes tensors that PyTorch exports and hands each of them back.
func TestDLPackWithTorch(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the structs are those of a 64-bit machine")
	}
	cmd := exec.Command(primustest.Python(t, "torch"), filepath.Join("testdata", "dlpack.py"))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, stdin.Close())
		assert.NoError(t, cmd.Wait(), stderr.String())
	})
	names := map[string]tensor.DType{
		"float64": tensor.F64, "float32": tensor.F32, "bfloat16": tensor.BF16, "float16": tensor.F16,
		"int64": tensor.I64, "int32": tensor.I32, "uint8": tensor.U8,
	}
	lines := bufio.NewReader(stdout)
	var tensors []exchanged
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, stderr.String())
		if line == "end\n" {
			break
		}
		var x exchanged
		require.NoError(t, json.Unmarshal([]byte(line), &x))
		tensors = append(tensors, x)
	}
	require.Len(t, tensors, 6*len(names))
	for _, want := range tensors {
		x := take(t, want)
		assert.Equal(t, names[want.DType], x.DType())
		assert.Equal(t, want.Values, x.Float64s())

		require.NoError(t, json.NewEncoder(stdin).Encode(hand(t, x)))
		line, err := lines.ReadString('\n')
		require.NoError(t, err, stderr.String())
		var back exchanged
		require.NoError(t, json.Unmarshal([]byte(line), &back))
		assert.Equal(t, want.DType, back.DType)
		assert.Equal(t, want.Shape, back.Shape)
		assert.Equal(t, want.Values, back.Values)
	}
}

// take makes a tensor from what PyTorch exported, with its pointers replaced by pointers to copies.
func take(t *testing.T, x exchanged) *tensor.Tensor {
	t.Helper()
	raw, err := hex.DecodeString(x.Struct)
	require.NoError(t, err)
	bytes, err := hex.DecodeString(x.Data)
	require.NoError(t, err)
	data := aligned(len(bytes) + 8)
	copy(data, bytes)
	var d tensor.DLTensor
	require.Len(t, raw, int(unsafe.Sizeof(d)))
	clear(raw[:8])
	clear(raw[24:40])
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&d)), len(raw)), raw)
	d.Data, d.Shape, d.Strides = unsafe.Pointer(&data[0]), unsafe.SliceData(x.Shape), unsafe.SliceData(x.Strides)
	got, err := tensor.FromDLPack(&d, nil)
	require.NoError(t, err)
	return got
}

// hand returns the bytes of the description that a tensor exports.
func hand(t *testing.T, x *tensor.Tensor) exchanged {
	t.Helper()
	d := x.DLPack()
	defer runtime.KeepAlive(x)
	out := exchanged{
		Struct: hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(&d)), unsafe.Sizeof(d))),
		Shape:  unsafe.Slice(d.Shape, d.NDim), Strides: unsafe.Slice(d.Strides, d.NDim),
	}
	if x.NumElements() > 0 {
		out.Data = hex.EncodeToString(unsafe.Slice((*byte)(d.Data), x.Storage().Size()))
	}
	return out
}
