package main

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// tokens is the number of tokens of a training step.
const tokens = 2048

// linears are the linear layers of the model presets: rows and columns of W.
var linears = []struct {
	name    string
	out, in int
}{
	{"6M/qkv", 864, 288},
	{"6M/out", 288, 288},
	{"6M/gate_up", 1536, 288},
	{"6M/down", 288, 768},
	{"6M/head", 512, 288},
	{"30M/qkv", 1536, 512},
	{"30M/out", 512, 512},
	{"30M/gate_up", 2752, 512},
	{"30M/down", 512, 1376},
	{"30M/head", 4096, 512},
}

// gemms are y = x·Wᵀ, dx = dy·W and dW = dyᵀ·x of each linear layer, and squares.
func (b *bench) gemms() []contest {
	var all []contest
	for _, l := range linears {
		all = append(all,
			b.gemm(l.name+"/fprop", tokens, l.out, l.in, true, false),
			b.gemm(l.name+"/dgrad", tokens, l.in, l.out, false, false),
			b.gemm(l.name+"/wgrad", l.out, l.in, tokens, false, true),
		)
	}
	for _, n := range []int{256, 512, 1024, 2048} {
		all = append(all, b.gemm(fmt.Sprintf("square/%d", n), n, n, n, false, false))
	}
	return all
}

// gemm is a product of m×k and k×n whose operands may be stored transposed.
func (b *bench) gemm(name string, m, n, k int, transA, transB bool) contest {
	work := 2e-9 * float64(m) * float64(n) * float64(k)
	return contest{group: "gemm", name: name, unit: "GFLOP/s", prepare: func() (match, error) {
		a := gemm.GenericGemmArgs{TransA: transA, TransB: transB, D: b.floats(m, n)}
		a.A, a.B = b.operand(k, n, transA), b.operand(m, k, transB)
		if err := gemm.GenericGemm.Validate(a); err != nil {
			return match{}, err
		}
		run := implOf(b.flagos, gemm.GenericGemm)
		pair := match{oursWork: work, peerWork: work, peerName: "OpenBLAS", ours: timed(b.now, func() error { return run(b.exec, a) })}
		if pair.peer.absent = b.blas.Available(); pair.peer.absent != nil {
			return pair, nil
		}
		if info := b.blas.Info(); strings.Contains(info, "warning") {
			return match{}, fmt.Errorf("the peer is not at its best: %s", info)
		}
		library := implOf(b.blas.Source(), gemm.GenericGemm)
		pair.peer = timed(b.now, func() error { return library(b.exec, a) })
		return pair, nil
	}}
}

// operand makes a rows×cols operand of a product, stored as its transpose if asked.
func (b *bench) operand(rows, cols int, transposed bool) *tensor.Tensor {
	if transposed {
		rows, cols = cols, rows
	}
	return b.floats(rows, cols)
}
