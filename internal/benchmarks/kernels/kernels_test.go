package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		code int
	}{
		{"help", []string{"-h"}, 0},
		{"unknown flag", []string{"-fast"}, 2},
		{"no number of threads", []string{"-threads", "1,x"}, 2},
		{"zero threads", []string{"-threads", "0"}, 2},
		{"bad expression", []string{"-only", "("}, 2},
		{"unknown format", []string{"-o", "yaml"}, 2},
		{"CPU time of two threads", []string{"-cpu", "-only", "^options"}, 2},
		{"CPU time of what another process does", []string{"-cpu", "-threads", "1", "-only", "^attention"}, 2},
		{"CPU time", []string{"-cpu", "-threads", "1", "-only", "^options/none"}, 0},
		{"argument", []string{"gemm"}, 2},
		{"no case", []string{"-only", "^none$", "-threads", "1"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			assert.Equal(t, tt.code, doMain(tt.args, &stdout, &stderr), "%s", &stderr)
			assert.Equal(t, tt.code == 2 || tt.name == "help", stderr.Len() > 0, "%s", &stderr)
		})
	}
}

func TestTrafficAndLoop(t *testing.T) {
	t.Parallel()
	x := func(rows int) *tensor.Tensor { return dense(make([]float32, rows*8), rows, 8) }
	same := x(64)
	tests := []struct {
		name     string
		operands []opregistry.Operand
		want     traffic
		loop     string
	}{
		{"only read", []opregistry.Operand{{Name: "x", Tensor: x(64), Access: opregistry.AccessRead}}, traffic{read: 2048}, "sum"},
		{"one to one", rope.FusedRopeForward.Operands(rope.FusedRopeArgs{Input: x(64), Output: x(64), Freqs: x(1)}), traffic{read: 2080, written: 2048}, "y = a·x"},
		{"two to one", norm.ResidualAdd.Operands(norm.ResidualAddArgs{A: x(64), B: x(64), Output: x(64)}), traffic{read: 4096, written: 2048}, "z = x + y"},
		{"in place", norm.ResidualAdd.Operands(norm.ResidualAddArgs{A: same, B: x(64), Output: same}), traffic{read: 4096, written: 2048, updated: 2048}, "y += a·x"},
		{"two results", []opregistry.Operand{{Tensor: x(64), Access: opregistry.AccessRead}, {Tensor: x(128), Access: opregistry.AccessWrite}}, traffic{read: 2048, written: 4096}, "y, z = a·x, b·x"},
		{"picked rows", embedding.EmbeddingFwd.Operands(embedding.EmbeddingFwdArgs{
			Indices: dense(make([]int32, 4), 4), Weight: x(64), Output: x(4),
		}), traffic{read: 16 + 128, written: 128}, "y = a·x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := trafficOf(tt.operands)
			assert.Equal(t, tt.want, got)
			l := loopFor(got)
			assert.Equal(t, tt.loop, l.name)
			size := 0
			for _, a := range l.arrays {
				size += 4 * len(a)
			}
			assert.InDelta(t, got.distinct(), size, 16, "both sides use as much memory")
			l.run(opregistry.Serial{})
		})
	}
}

func TestEveryCaseRuns(t *testing.T) {
	t.Parallel()
	b := newBench(1, elapsed())
	defer b.close()
	for _, c := range b.memoryOps() {
		m, err := c.prepare()
		require.NoError(t, err, c.name)
		for _, s := range []side{m.ours, m.peer} {
			took, err := s.call()
			require.NoError(t, err, c.name)
			assert.Positive(t, took, c.name)
		}
		assert.Positive(t, m.oursWork, c.name)
		assert.Positive(t, m.peerWork, c.name)
	}
	assert.Len(t, b.gemms(), 3*len(linears)+4)
	assert.Len(t, b.attentions(), 4)
}

// counting is a side whose calls take these times, in order.
func counting(times ...time.Duration) side {
	n := 0
	return side{call: func() (time.Duration, error) {
		n++
		return times[(n-1)%len(times)], nil
	}}
}

func TestContestTakesTheFastestCallOfEach(t *testing.T) {
	t.Parallel()
	c := contest{group: "g", name: "c", unit: "GB/s", prepare: func() (match, error) {
		return match{
			ours: counting(9*time.Second, 2*time.Second, 3*time.Second), oursWork: 10,
			peer: counting(8*time.Second, 5*time.Second), peerWork: 20, peerName: "p",
		}, nil
	}}
	r, err := c.run(limits{rounds: 2})
	require.NoError(t, err)
	assert.Equal(t, row{Group: "g", Case: "c", Unit: "GB/s", Flagos: 5, PeerName: "p", Peer: 4, Ratio: 1.25}, r)
}

func TestContestWithoutPeer(t *testing.T) {
	t.Parallel()
	c := contest{prepare: func() (match, error) {
		return match{ours: counting(time.Second), oursWork: 1, peer: side{absent: errors.New("not installed")}}, nil
	}}
	r, err := c.run(limits{rounds: 1})
	require.NoError(t, err)
	assert.Equal(t, row{Flagos: 1, Absent: "not installed"}, r)
}

func TestContestReturnsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	c := contest{prepare: func() (match, error) {
		return match{ours: counting(time.Second), peer: timed(elapsed(), func() error { return broken })}, nil
	}}
	_, err := c.run(limits{rounds: 1})
	require.ErrorIs(t, err, broken)
}

func TestReport(t *testing.T) {
	t.Parallel()
	rows := []row{
		{Group: "gemm", Case: "a", Threads: 1, Unit: "GFLOP/s", Flagos: 50, Peer: 100, Ratio: 0.5, PeerName: "OpenBLAS"},
		{Group: "gemm", Case: "b", Threads: 1, Unit: "GFLOP/s", Flagos: 200, Peer: 100, Ratio: 2, PeerName: "OpenBLAS"},
		{Group: "attention", Case: "c", Threads: 1, Unit: "GFLOP/s", Flagos: 7, PeerName: "PyTorch", Absent: "no python3"},
	}
	summaries := summarize(rows)
	require.Len(t, summaries, 1)
	assert.Len(t, summaries[0].ratios, 2)
	assert.InDelta(t, 0.5, summaries[0].least, 0)
	assert.InDelta(t, 1, summaries[0].mean(), 1e-12)

	var text, data bytes.Buffer
	require.NoError(t, report(&text, "table", rows))
	assert.Contains(t, text.String(), "no PyTorch: no python3\n")
	require.NoError(t, report(&data, "json", rows))
	var back []row
	require.NoError(t, json.Unmarshal(data.Bytes(), &back))
	assert.Equal(t, rows, back)
}
