package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/ops"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpsDescribe(t *testing.T) {
	got := commandtest.Run(t, "ops", "describe", "residual_add", "multi_tensor_scale")
	require.Zero(t, got.Code, got.Stderr)
	one, other, _ := strings.Cut(got.Out, "\n\nmulti_tensor_scale:")
	assert.Equal(t, strings.TrimPrefix(`
residual_add: elementwise sum of two tensors

residual_add adds two tensors of one shape:

  out = a + b

a and b are read, out is written; out may be a or b. Any compute dtype, one for all; the sum
is formed in f32 or better and rounded once.

Example:

  a=[1 2] b=[0.5 -2] → output=[1.5 0]

results: f32 and f64 5.960464477539063e-08 + 1.1920928955078125e-07·|want|, narrower equality (one rounded sum; f32 holds the sum of two narrow values well enough to round it as if it were exact)
index  argument  form    access  dtypes                 shape  rules
───────────────────────────────────────────────────────────────────────────────────────────────
    0  a         tensor  read    f32, bf16, f16 or f64  [..]
    1  b         tensor  read    =a                     [..]
    2  output    tensor  write   =a                     [..]   may be the same view as a or b`, "\n"), one)
	assert.Contains(t, other, "    -  tensor_lists[1], ", "each list of a list of lists")

	got = commandtest.Run(t, "ops", "describe", "all_reduce")
	assert.Regexp(t, `reduction +int .* 0 sum, 1 max, 2 min, 3 avg`, got.Out)

	var names []string
	for _, op := range ops.All() {
		names = append(names, op.Name())
	}
	got = commandtest.Run(t, append([]string{"ops", "describe", "-o", "json"}, names...)...)
	require.Zero(t, got.Code, got.Stderr)
	var all []struct {
		Op        string
		Formula   string
		Arguments []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
	require.Len(t, all, len(names))
	for i, d := range all {
		assert.Equal(t, names[i], d.Op)
		assert.NotEmpty(t, d.Arguments, d.Op)
		assert.Contains(t, d.Formula, "Example:", d.Op)
	}
	assert.Equal(t, 2, commandtest.Run(t, "ops", "describe").Code)
	assert.Contains(t, commandtest.Run(t, "ops", "describe", "swigul").Stderr, `did you mean "swiglu"?`)
}
