package ops_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/onednn"
	"github.com/primus-fl/primus/vendors/openblas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func listOps(t *testing.T, args ...string) []commandtest.ImplRow {
	t.Helper()
	got := commandtest.Run(t, append([]string{"ops", "list", "-o", "json"}, args...)...)
	require.Zero(t, got.Code, got.Stderr)
	var rows []commandtest.ImplRow
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	return rows
}

func TestOpsList(t *testing.T) {
	rows := listOps(t)
	first := map[string]string{}
	kinds := map[string]bool{}
	for _, r := range rows {
		if r.Rank == 1 {
			first[r.Op] = r.Impl
		}
		kinds[r.Op+" "+r.Kind] = true
		assert.Equal(t, r.Rank == 0, r.Reason != "", "%+v", r)
	}
	for _, op := range ops.All() {
		switch name := op.Name(); {
		case kinds[name+" flagos"]:
			assert.Equal(t, "default.flagos", first[name], name)
		case kinds[name+" reference"]:
			assert.Regexp(t, `^reference\.(go|local)$`, first[name], name)
		}
	}
	assert.Equal(t, "default.flagos", first["rmsnorm_fwd"])
	assert.Equal(t, "reference.local", first["all_reduce"])
}

func TestOpsListSaysWhyALibraryIsNotUsed(t *testing.T) {
	for _, r := range listOps(t, "generic_gemm") {
		assert.Equal(t, "generic_gemm", r.Op)
		switch r.Vendor {
		case "opencl":
			assert.False(t, r.Available)
			assert.Zero(t, r.Rank)
			assert.Contains(t, r.Reason, "there is no OpenCL device")
		case "clblast":
			assert.Zero(t, r.Rank)
			assert.Equal(t, r.Available, strings.Contains(r.Reason, "operands on cpu"), r.Reason)
		case "openblas", "onednn":
			assert.False(t, r.Available)
			assert.Zero(t, r.Rank)
			assert.Contains(t, r.Reason, commandtest.Absent)
		}
	}
}

// A preference for vendors means something on a machine without libraries, too.
func TestOpsListPrefersAVendorWithoutLibraries(t *testing.T) {
	t.Setenv("TE_FL_PREFER", "vendor")
	rows := listOps(t, "generic_gemm")
	require.NotEmpty(t, rows)
	assert.Equal(t, "vendor.gonum", rows[0].Impl)
	assert.Equal(t, 1, rows[0].Rank)
}

func TestOpsListFollowsThePolicy(t *testing.T) {
	t.Setenv("TE_FL_PER_OP", "swiglu=reference|flagos")
	rows := listOps(t, "swiglu", "dswiglu")
	require.Len(t, rows, 6)
	assert.Equal(t, commandtest.ImplRow{Op: "swiglu", Impl: "reference.go", Kind: "reference", Priority: 50, Available: true, Rank: 1}, rows[0])
	assert.Equal(t, "default.flagos", rows[3].Impl)
}

func TestOpsListTable(t *testing.T) {
	got := commandtest.Run(t, "ops", "list", "swiglu")
	require.Zero(t, got.Code)
	assert.Equal(t, strings.TrimPrefix(`
op      impl            kind       vendor  priority  available  rank  reason
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
swiglu  default.flagos  flagos     -            150  yes           1
swiglu  reference.go    reference  -             50  yes           2
swiglu  vendor.opencl   vendor     opencl       100  no            -  unavailable: there is no OpenCL device: primus devices list says what was looked for
`, "\n"), got.Out)
	assert.Empty(t, got.Stderr)
}

func TestOpsOfTransformerEngineThatAreNotDispatched(t *testing.T) {
	rows := listOps(t, "get_cudnn_version", "swiglu")
	require.Len(t, rows, 4)
	assert.Equal(t, commandtest.ImplRow{Op: "get_cudnn_version", Reason: rows[0].Reason}, rows[0])
	assert.Regexp(t, "^not dispatched here: primus plugins list shows", rows[0].Reason)

	got := commandtest.Run(t, "ops", "explain", "get_cublaslt_version", "swiglu")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, "^get_cublasLt_version: not dispatched here\nTransformerEngine-FL: ask for the version of cuBLASLt\nhere: .*\n\nswiglu: served by ", got.Out)
	got = commandtest.Run(t, "ops", "explain", "get_cudnn_version", "-o", "json")
	assert.JSONEq(t, `{"op": "get_cudnn_version", "purpose": "ask for the version of cuDNN", "instead": "`+strings.TrimPrefix(rows[0].Reason, "not dispatched here: ")+`"}`, got.Out)
	got = commandtest.Run(t, "ops", "explain", "get_cudnn_version", "-o", "table")
	assert.Contains(t, got.Out, "get_cudnn_version  not dispatched")

	t.Setenv("TE_FL_PER_OP", "get_cudnn_version=vendor|flagos")
	got = commandtest.Run(t, "ops", "list", "swiglu")
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, `TE_FL_PER_OP at 1 names op "get_cudnn_version", which is not dispatched here: primus ops explain get_cudnn_version`)
}

func TestUnknownVendorInThePolicyIsAWarning(t *testing.T) {
	t.Setenv("TE_FL_DENY_VENDORS", "acme")
	got := commandtest.Run(t, "ops", "list", "swiglu")
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, "WARN")
	assert.Contains(t, got.Stderr, "acme")
}

// Without an order of vendors the one that was measured to be the fastest comes first.
func TestFastestVendorComesFirst(t *testing.T) {
	rate := func(s opregistry.Source) float64 { return s.Impls[0].Measured.Rate }
	assert.Greater(t, rate(onednn.New(onednn.Options{}).Source()), rate(openblas.New(openblas.Options{}).Source()))
	t.Setenv("TE_FL_PREFER", "vendor")
	got := commandtest.Run(t, "ops", "explain", "generic_gemm", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var e opmanager.Explanation
	require.NoError(t, json.Unmarshal([]byte(got.Out), &e))
	both := slices.ContainsFunc(e.Order, func(s opmanager.ImplStatus) bool { return s.ID == "vendor.openblas" })
	if !both || !slices.ContainsFunc(e.Order, func(s opmanager.ImplStatus) bool { return s.ID == "vendor.onednn" }) {
		t.Skip("OpenBLAS and oneDNN are not both here")
	}
	assert.Equal(t, "vendor.onednn", e.Selected)
	assert.Contains(t, e.Order[1].Reason, "slower as measured beside default.flagos: 0.79 (make bench-train), where vendor.onednn has 0.85")
}
