package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplainGolden(t *testing.T) {
	t.Setenv("TE_FL_PER_OP", "swiglu=reference;rmsnorm_fwd=reference|flagos")
	tests := map[string][]string{
		"explain.json":        {"ops", "explain", "swiglu", "-o", "json"},
		"explain_family.json": {"ops", "explain", "rmsnorm_bwd", "-o", "json"},
		"explain.txt":         {"ops", "explain", "swiglu", "rmsnorm_bwd"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Run(t, args...)
			require.Zero(t, got.Code, got.Stderr)
			assert.Empty(t, got.Stderr)
			goldentest.Check(t, name, got.Out)
		})
	}
}

// Text is what the library says of itself, and every format can be had for some ops and for all.
func TestExplainFormats(t *testing.T) {
	got := commandtest.Run(t, "ops", "explain", "swiglu", "-o", "json")
	var e opmanager.Explanation
	require.NoError(t, json.Unmarshal([]byte(got.Out), &e))
	text := commandtest.Run(t, "ops", "explain", "swiglu", "-o", "text")
	assert.Equal(t, e.String()+"\n", text.Out, text.Stderr)
	assert.Equal(t, text, commandtest.Run(t, "ops", "explain", "swiglu"))
	assert.Equal(t, commandtest.Run(t, "ops", "explain"), commandtest.Run(t, "ops", "explain", "-o", "table"))
	assert.Equal(t, 3, strings.Count(commandtest.Run(t, "ops", "explain", "swiglu", "-o", "table").Out, "\n"))
	assert.Equal(t, len(ops.All()), strings.Count(commandtest.Run(t, "ops", "explain", "-o", "text").Out, "\norder: "))
	assert.Equal(t, 2, commandtest.Run(t, "ops", "explain", "-o", "yaml").Code)
}

func TestExplainAll(t *testing.T) {
	got := commandtest.Run(t, "ops", "explain")
	require.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, len(ops.All())+2, strings.Count(got.Out, "\n"), "a line for each op below the header")

	got = commandtest.Run(t, "ops", "explain", "-o", "json")
	var all []opmanager.Explanation
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
	require.Len(t, all, len(ops.All()))
	for _, e := range all {
		if len(e.Order) == 0 {
			assert.Empty(t, e.Selected, e.Op)
			continue
		}
		assert.Equal(t, e.Order[0].ID, e.Selected, e.Op)
		assert.Empty(t, e.Order[0].Reason)
		for _, s := range append(e.Order[1:], e.Rejected...) {
			assert.NotEmpty(t, s.Reason, "%s of %s", s.ID, e.Op)
		}
	}
}

func TestExplainSaysWhyALibraryIsNotUsed(t *testing.T) {
	t.Setenv("TE_FL_DENY_VENDORS", "onednn")
	got := commandtest.Run(t, "ops", "explain", "generic_gemm", "-o", "json")
	var e opmanager.Explanation
	require.NoError(t, json.Unmarshal([]byte(got.Out), &e))
	reasons := map[string]string{}
	for _, s := range e.Rejected {
		reasons[s.ID] = s.Reason
	}
	assert.Equal(t, "vendor onednn is denied by environment TE_FL_DENY_VENDORS", reasons["vendor.onednn"])
	assert.Contains(t, reasons["vendor.openblas"], "unavailable: ")
	assert.Contains(t, reasons["vendor.openblas"], commandtest.Absent)
	assert.Contains(t, reasons["vendor.opencl"], "primus devices list says what was looked for")
}

func TestExplainCalls(t *testing.T) {
	got := commandtest.Run(t, "ops", "explain", "swiglu", "--dtype", "bf16", "--shape", "4x8")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "calls: first operand bf16[4 8]\n")
	for want, args := range map[string][]string{
		`; did you mean "bf16"?`:           {"--dtype", "bf61"},
		`--shape: given "4x", want the`:    {"--shape", "4x"},
		"--layer: given -2, want a number": {"--layer", "-2"},
		`did you mean "forward"`:           {"--phase", "forwards"},
	} {
		got := commandtest.Run(t, append([]string{"ops", "explain", "swiglu"}, args...)...)
		assert.Equal(t, 2, got.Code, want)
		assert.Contains(t, got.Stderr, want)
	}
}
