package onednn

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// sgemmFunc is dnnl_sgemm. Its matrices are row-major.
type sgemmFunc func(transA, transB byte, m, n, k int64, alpha float32, a *float32, lda int64,
	b *float32, ldb int64, beta float32, c *float32, ldc int64) int32

// bgemmFunc is dnnl_gemm_bf16bf16f32: dnnl_sgemm of operands in bf16.
type bgemmFunc func(transA, transB byte, m, n, k int64, alpha float32, a *tensor.BFloat16, lda int64,
	b *tensor.BFloat16, ldb int64, beta float32, c *float32, ldc int64) int32

// product is one call on its way to a fixed thread.
type product struct {
	sgemm  sgemmFunc
	bgemm  bgemmFunc
	p      *blas.Product
	status int32
	run    func()
}

func newProduct(sgemm sgemmFunc, bgemm bgemmFunc) *product {
	c := &product{sgemm: sgemm, bgemm: bgemm}
	c.run = c.call
	return c
}

func (c *product) call() {
	p := c.p
	if p.DType == tensor.BF16 {
		c.status = c.bgemm(flag(p.TransLeft), flag(p.TransRight), int64(p.M), int64(p.N), int64(p.K),
			p.Alpha, (*tensor.BFloat16)(p.Left), int64(p.LDLeft), (*tensor.BFloat16)(p.Right), int64(p.LDRight), p.Beta, (*float32)(p.Out), int64(p.LDOut))
		return
	}
	c.status = c.sgemm(flag(p.TransLeft), flag(p.TransRight), int64(p.M), int64(p.N), int64(p.K),
		p.Alpha, (*float32)(p.Left), int64(p.LDLeft), (*float32)(p.Right), int64(p.LDRight), p.Beta, (*float32)(p.Out), int64(p.LDOut))
}

// SGEMM computes p on one of the fixed threads. It waits while all are busy.
func (h *handle) SGEMM(p *blas.Product) error { return h.multiply("dnnl_sgemm", p) }

// BF16GEMM is SGEMM for operands in bf16.
func (h *handle) BF16GEMM(p *blas.Product) error { return h.multiply("dnnl_gemm_bf16bf16f32", p) }

// The sets of bits in the mask of dnnl_get_effective_cpu_isa that CPUs with AVX-512, and with
// instructions for bf16, have.
const (
	isaAVX512 = 0x27
	isaBF16   = 0xe7
)

// BF16 declines on CPUs that lack instructions for bf16: oneDNN 2.6 takes 3 to 4 times as long
// there as the default impl, which multiplies in f32.
func (h *handle) BF16() error {
	switch {
	case h.bgemm == nil:
		return opregistry.Unsupported("%s has no product in bf16", h.file)
	case h.isa&isaBF16 != isaBF16:
		return opregistry.Unsupported("oneDNN uses %s on this machine, want avx512 bf16 or better for products in bf16", isaName(h.isa))
	}
	return nil
}

func (h *handle) multiply(function string, p *blas.Product) error {
	c := <-h.products
	c.p = p
	err := h.fixed.Do(c.run)
	status := c.status
	c.p = nil
	h.products <- c
	if err == nil && status != 0 {
		err = fmt.Errorf("onednn: %s of %d×%d×%d: given status %d, want 0", function, p.M, p.N, p.K, status)
	}
	return err
}

func flag(transposed bool) byte {
	if transposed {
		return 'T'
	}
	return 'N'
}

var (
	_ blas.SGEMM    = (*handle)(nil)
	_ blas.BF16GEMM = (*handle)(nil)
)
