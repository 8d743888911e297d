package opregistry_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type mode uint8

type signedArgs struct {
	A    *tensor.Tensor   `op:"0 a read compute [m k]"`
	B    *tensor.Tensor   `op:"1 b read compute [k n] ?"`
	D    *tensor.Tensor   `op:"2 d write compute [m n]"`
	Many []*tensor.Tensor `op:"3 many read any (m) len=groups ?"`
	Flip bool             `op:"4 flip"`
	Mode mode             `op:"5 mode"`
	Seed uint64           `op:"6 seed"`
	Eps  float32          `op:"7 eps"`
}

var signed = opregistry.NewOp("signed", opregistry.Schema[signedArgs]{})

func matrix(t testing.TB, d tensor.DType, rows, cols int) *tensor.Tensor {
	t.Helper()
	made, err := tensor.FromBytes(make([]byte, rows*cols*d.Size()), d, rows, cols)
	require.NoError(t, err)
	return made
}

func TestSignature(t *testing.T) {
	base := signedArgs{A: matrix(t, tensor.F32, 64, 32), B: matrix(t, tensor.F32, 32, 16), D: matrix(t, tensor.F32, 64, 16)}
	want := signed.At(&base).Signature()
	same := base
	same.A, same.Seed, same.Eps = matrix(t, tensor.F32, 64, 32), 7, 0.5
	assert.Equal(t, want, signed.At(&same).Signature(), "memory, seeds and floats do not count")
	close := base
	close.A = matrix(t, tensor.F32, 67, 32)
	assert.Equal(t, want, signed.At(&close).Signature(), "67 has the first four digits of 64")

	turned, err := base.A.Transpose(0, 1)
	require.NoError(t, err)
	seen := map[uint64]string{want: "base"}
	for name, edit := range map[string]func(*signedArgs){
		"dtype":    func(a *signedArgs) { a.A = matrix(t, tensor.BF16, 64, 32) },
		"length":   func(a *signedArgs) { a.A = matrix(t, tensor.F32, 72, 32) },
		"axes":     func(a *signedArgs) { a.A = matrix(t, tensor.F32, 32, 64) },
		"layout":   func(a *signedArgs) { a.A = turned },
		"optional": func(a *signedArgs) { a.B = nil },
		"bool":     func(a *signedArgs) { a.Flip = true },
		"mode":     func(a *signedArgs) { a.Mode = 3 },
		"list":     func(a *signedArgs) { a.Many = []*tensor.Tensor{a.A} },
		"lists":    func(a *signedArgs) { a.Many = []*tensor.Tensor{a.A, a.A} },
	} {
		changed := base
		edit(&changed)
		got := signed.At(&changed).Signature()
		assert.Empty(t, seen[got], "%s is the same as %s", name, seen[got])
		seen[got] = name
	}
	base.Flip, base.Mode, base.Many = true, 3, []*tensor.Tensor{base.A, base.A}
	assert.Equal(t, "a f32 [64 32], b f32 [32 16], d f32 [64 16], 2× many f32 of 4096 elements, flip, mode=3", signed.At(&base).Describe())
}

func TestSignatureAllocatesNothing(t *testing.T) {
	a := signedArgs{A: matrix(t, tensor.F32, 64, 32), D: matrix(t, tensor.F32, 64, 16), Many: []*tensor.Tensor{matrix(t, tensor.F32, 8, 8)}}
	assert.Zero(t, testing.AllocsPerRun(100, func() { signed.At(&a).Signature() }))
}

func BenchmarkSignature(b *testing.B) {
	a := signedArgs{A: matrix(b, tensor.F32, 64, 32), B: matrix(b, tensor.F32, 32, 16), D: matrix(b, tensor.F32, 64, 16)}
	call := signed.At(&a)
	for b.Loop() {
		call.Signature()
	}
}
