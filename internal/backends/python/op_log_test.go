package python

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A value of a line that is no number is warned of, once.
func TestUnreadValuesAreLogged(t *testing.T) {
	var log strings.Builder
	run := newTrainer(&backend.TrainContext{Log: slog.New(slog.NewTextHandler(&log, nil))}, Framework{Name: "f", Step: MegatronStep}, "T")
	for range 2 {
		assert.False(t, run.line(3, "iteration 3/50 | learning rate: None | lm loss: lost |"))
	}
	for _, want := range []string{`learning rate in a line of rank 3: given \"None\", want a number`, `lm loss in a line of rank 3: given \"lost\"`} {
		assert.Equal(t, 1, strings.Count(log.String(), want), "%q in %s", want, log.String())
	}
}

func TestOpLog(t *testing.T) {
	cuda := opmanager.ImplInfo{ID: "vendor.cuda", Kind: opregistry.KindVendor, Vendor: "cuda"}
	flagos := opmanager.ImplInfo{ID: "default.flagos", Kind: opregistry.KindFlagos}
	reference := opmanager.ImplInfo{ID: "reference.torch", Kind: opregistry.KindReference}
	const head = "[2026-01-31 12:00:00,000 TE-FL manager.py:133 INFO] "
	var l opLog
	for _, tt := range []struct {
		line string
		want []opmanager.Event
	}{
		{"Op 'gemm' using 'vendor.cuda' (kind=vendor, vendor=CUDA)", nil}, // a line of somebody else
		{"[TE-FL manager.py:133 INFO] OpManager initialized: 3 ops with 9 implementations", []opmanager.Event{opmanager.Registered{Ops: 3, Impls: 9}}},
		{head + "Registered impl_ids: ['a']", nil},
		{"\x1b[33m" + head + "Op 'gemm' using 'vendor.cuda' (kind=vendor, vendor=CUDA)\x1b[0m", []opmanager.Event{opmanager.Selected{Op: "gemm", Impl: cuda}}},
		{head + "Op 'gemm' switched from 'vendor.cuda' to 'default.flagos' (kind=OpImplKind.DEFAULT, vendor=None)",
			[]opmanager.Event{opmanager.Switched{Op: "gemm", From: cuda, To: flagos}}},
		{head + "Op 'gemm' using 'mine' (kind=flagos, vendor=None)", []opmanager.Event{opmanager.Selected{Op: "gemm", Impl: opmanager.ImplInfo{ID: "mine", Kind: opregistry.KindFlagos}}}},
		{head + "something else", nil},
	} {
		assert.Equal(t, tt.want, l.events(0, tt.line), tt.line)
	}

	// TransformerEngine-FL writes of a fallback in the first call as if nothing had failed.
	failed := l.events(1, head+"Implementation 'vendor.cuda' failed for op 'norm': no kernel (shape 3)")
	require.Len(t, failed, 1)
	assert.EqualError(t, failed[0].(opmanager.Failed).Err, "no kernel (shape 3)")
	assert.Equal(t, []opmanager.Event{opmanager.Selected{Op: "norm", Impl: flagos}}, l.events(0, head+"Op 'norm' using 'default.flagos' (kind=flagos, vendor=None)"),
		"the failure was in another rank")
	fell := l.events(1, head+"Op 'norm' using 'default.flagos' (kind=flagos, vendor=None)")
	require.Len(t, fell, 2)
	assert.Equal(t, opmanager.FellBack{Op: "norm", From: cuda, To: flagos, Cause: failed[0].(opmanager.Failed).Err}, fell[1])

	for _, line := range []string{"Cached implementation 'default.flagos' failed for op 'norm': x", "Last implementation 'reference.torch' failed for op 'norm': y"} {
		require.Len(t, l.events(1, head+line), 1, line)
	}
	again := l.events(1, head+"Op 'norm' fallback to 'vendor.cuda' (kind=vendor, vendor=CUDA)")
	require.Len(t, again, 1)
	assert.Equal(t, reference, again[0].(opmanager.FellBack).From, "the last that failed")
}
