package gonum

import (
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/primus-fl/primus/opregistry"
	vendorsblas "github.com/primus-fl/primus/vendors/internal/blas"
)

// A product is computed in blocks of blockRows×blockCols, over blockInner at a time, so that the
// block of op(Right) stays in a core's cache. gonum starts goroutines for four or more blocks of
// 64×64; these blocks are so small that it computes them in the calling goroutine.
const (
	blockRows  = 64
	blockCols  = 64
	blockInner = 256
)

// library computes products with gonum.
type library struct{}

// SGEMM computes p in f32.
func (library) SGEMM(p *vendorsblas.Product) error {
	multiply(p, sgemm, &singles)
	return nil
}

// DGEMM computes p in f64.
func (library) DGEMM(p *vendorsblas.Product) error {
	multiply(p, dgemm, &doubles)
	return nil
}

var (
	singles = sync.Pool{New: func() any { return new(product[float32]) }}
	doubles = sync.Pool{New: func() any { return new(product[float64]) }}
)

// The kernels are bound once, so that a call allocates nothing.
var (
	sgemm kernel[float32] = gonum.Implementation{}.Sgemm
	dgemm kernel[float64] = gonum.Implementation{}.Dgemm
)

// kernel is ?gemm of gonum.
type kernel[T float32 | float64] func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

// product is a product whose operands are laid out as gonum's exact kernel reads them: rows of
// op(Left) and columns of op(Right), both contiguous. The kernels for other layouts skip the zeros
// of Left and so lose NaN and infinities of Right.
type product[T float32 | float64] struct {
	gemm        kernel[T]
	m, n, k     int
	alpha, beta T
	left, right []T // M×K and N×K
	ldLeft      int
	ldRight     int
	out         []T
	ldOut       int
	turn        transpose[T]
}

// multiply computes p.
func multiply[T float32 | float64](p *vendorsblas.Product, gemm kernel[T], pool *sync.Pool) {
	c := pool.Get().(*product[T])
	defer pool.Put(c)
	*c = product[T]{
		gemm: gemm, m: p.M, n: p.N, k: p.K, alpha: T(p.Alpha), beta: T(p.Beta),
		ldLeft: p.LDLeft, ldRight: p.LDRight, ldOut: p.LDOut,
		out: elements[T](p.Out, p.M, p.N, p.LDOut),
	}
	defer func() { *c = product[T]{} }()
	left, right := p.Left, p.Right
	if p.TransLeft {
		scratch := c.turn.run(p.Exec, elements[T](p.Left, p.K, p.M, p.LDLeft), p.K, p.M, p.LDLeft)
		defer p.Exec.Release(scratch)
		left, c.ldLeft = unsafe.Pointer(unsafe.SliceData(scratch)), p.K
	}
	if !p.TransRight {
		scratch := c.turn.run(p.Exec, elements[T](p.Right, p.K, p.N, p.LDRight), p.K, p.N, p.LDRight)
		defer p.Exec.Release(scratch)
		right, c.ldRight = unsafe.Pointer(unsafe.SliceData(scratch)), p.K
	}
	c.left, c.right = elements[T](left, p.M, p.K, c.ldLeft), elements[T](right, p.N, p.K, c.ldRight)
	p.Exec.Pool().Run(blocks(p.M, blockRows)*blocks(p.N, blockCols), c)
}

// Do computes a block of the result.
func (c *product[T]) Do(part int) {
	across := blocks(c.n, blockCols)
	i, j := part/across*blockRows, part%across*blockCols
	rows, cols := min(blockRows, c.m-i), min(blockCols, c.n-j)
	beta := c.beta
	for l := 0; l < c.k; l += blockInner {
		c.gemm(blas.NoTrans, blas.Trans, rows, cols, min(blockInner, c.k-l), c.alpha,
			c.left[i*c.ldLeft+l:], c.ldLeft, c.right[j*c.ldRight+l:], c.ldRight, beta, c.out[i*c.ldOut+j:], c.ldOut)
		beta = 1
	}
}

func blocks(n, size int) int { return (n + size - 1) / size }

// elements returns the memory of a matrix.
func elements[T float32 | float64](first unsafe.Pointer, rows, cols, ld int) []T {
	return unsafe.Slice((*T)(first), (rows-1)*ld+cols)
}

var _ opregistry.Task = (*product[float32])(nil)
