package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

func TestKernelFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-h":                                  "help requested",
		"-fast":                               "not defined: -fast",
		"-threads 1,x":                        `"x" is not a number of threads`,
		"-threads 0":                          `"0" is not a number of threads`,
		"-only (":                             "missing closing )",
		"-o yaml":                             `-o: given "yaml", want table or json`,
		"gemm":                                `unexpected argument "gemm"`,
		"-cpu -only ^o":                       "want one thread and cases other than attention",
		"-cpu -threads 1 -only ^attention":    "want one thread and cases other than attention",
		"-cpu -threads 1 -only ^options/none": "",
		"-only ^none$ -threads 1":             "",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(t.Context(), append([]string{"kernels"}, strings.Fields(args)...), &out, io.Discard)
			if want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, want)
				assert.Empty(t, out.String())
			}
		})
	}
	assert.ErrorContains(t, run(t.Context(), []string{"kernel"}, io.Discard, io.Discard), `given ["kernel"], want one of dispatch, expect, generate, kernels, opencl, `)
}

func TestTrafficAndLoop(t *testing.T) {
	t.Parallel()
	m := opbench.NewMaker(cpu.New(), tensor.F32)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	x := func(rows int) *tensor.Tensor { return m.Fresh(tensor.F32, rows, 8) }
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
			Indices: m.Fresh(tensor.I32, 4), Weight: x(64), Output: x(4),
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

func testBench(t *testing.T) *bench {
	b, err := newBench(1)
	require.NoError(t, err)
	t.Cleanup(b.close)
	return b
}

func TestEveryCaseRuns(t *testing.T) {
	t.Parallel()
	b := testBench(t)
	names, products := map[string]bool{}, 0
	for _, c := range b.contests() {
		assert.False(t, names[c.group+c.name], c.name)
		names[c.group+c.name] = true
		if c.group == "gemm" {
			products++
		}
		if c.group != "memory" && c.group != "gelu" && c.name != "quantize/delayed/both_ways" && c.name != "topk_fwd/softmax" {
			continue
		}
		r, err := b.run(c, limits{rounds: 1})
		require.NoError(t, err, c.name)
		assert.Positive(t, r.Ratio, c.name)
	}
	assert.Equal(t, 3*len(linears)+4, products)
}

// counting is a side whose calls take these times, in order.
func counting(times ...time.Duration) *opbench.Side {
	n := 0
	return &opbench.Side{Calls: 1, Time: func(int) (time.Duration, error) {
		n++
		return times[(n-1)%len(times)], nil
	}}
}

func TestContest(t *testing.T) {
	t.Parallel()
	b, broken := testBench(t), errors.New("broken")
	contend := func(peer *opbench.Side) (kernelRow, error) {
		return b.run(contest{group: "g", name: "c", unit: "GB/s", prepare: func(*opbench.Maker) (match, error) {
			return match{
				ours: counting(9*time.Second, 2*time.Second, 3*time.Second), oursWork: 10, peer: peer, peerWork: 20, peerName: "p",
			}, nil
		}}, limits{rounds: 2})
	}
	r, err := contend(counting(8*time.Second, 5*time.Second))
	require.NoError(t, err)
	assert.Equal(t, kernelRow{Group: "g", Case: "c", Threads: 1, Unit: "GB/s", Flagos: 5, PeerName: "p", Peer: 4, Ratio: 1.25}, r, "the fastest call of each counts")
	r, err = contend(&opbench.Side{Err: errors.New("not installed")})
	require.NoError(t, err)
	assert.Equal(t, kernelRow{Group: "g", Case: "c", Threads: 1, Unit: "GB/s", Flagos: 5, PeerName: "p", Absent: "not installed"}, r)
	_, err = contend(opbench.NewSide(opbench.Elapsed(), func() error { return broken }))
	require.ErrorIs(t, err, broken)
}

func TestKernelTable(t *testing.T) {
	t.Parallel()
	rows := []kernelRow{
		{Group: "gemm", Case: "a", Threads: 1, Unit: "GFLOP/s", Flagos: 50, Peer: 100, Ratio: 0.5, PeerName: "OpenBLAS"},
		{Group: "gemm", Case: "b", Threads: 1, Unit: "GFLOP/s", Flagos: 200, Peer: 100, Ratio: 2, PeerName: "OpenBLAS"},
		{Group: "attention", Case: "c", Threads: 1, Unit: "GFLOP/s", Flagos: 7, PeerName: "PyTorch", Absent: "no python3"},
	}
	summaries := summarize(rows)
	require.Len(t, summaries, 1)
	assert.Len(t, summaries[0].ratios, 2)
	assert.InDelta(t, 0.5, summaries[0].least, 0)
	assert.InDelta(t, 1, summaries[0].mean(), 1e-12)

	var text bytes.Buffer
	require.NoError(t, kernelTable(&text, rows))
	assert.Contains(t, text.String(), "no PyTorch: no python3\n")
}
