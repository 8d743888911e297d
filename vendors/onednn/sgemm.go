package onednn

import (
	"fmt"

	"github.com/primus-fl/primus/vendors/internal/blas"
)

// sgemmFunc is dnnl_sgemm. Its matrices are row-major.
type sgemmFunc func(transA, transB byte, m, n, k int64, alpha float32, a *float32, lda int64,
	b *float32, ldb int64, beta float32, c *float32, ldc int64) int32

// product is one call on its way to a fixed thread.
type product struct {
	sgemm  sgemmFunc
	p      *blas.Product
	status int32
	run    func()
}

func newProduct(sgemm sgemmFunc) *product {
	c := &product{sgemm: sgemm}
	c.run = c.call
	return c
}

func (c *product) call() {
	p := c.p
	c.status = c.sgemm(flag(p.TransLeft), flag(p.TransRight), int64(p.M), int64(p.N), int64(p.K),
		p.Alpha, p.Left, int64(p.LDLeft), p.Right, int64(p.LDRight), p.Beta, p.Out, int64(p.LDOut))
}

// SGEMM computes p on one of the fixed threads. It waits while all are busy.
func (h *handle) SGEMM(p *blas.Product) error {
	c := <-h.products
	c.p = p
	err := h.fixed.Do(c.run)
	status := c.status
	c.p = nil
	h.products <- c
	if err == nil && status != 0 {
		err = fmt.Errorf("onednn: dnnl_sgemm of %d×%d×%d: got status %d, want 0", p.M, p.N, p.K, status)
	}
	return err
}

func flag(transposed bool) byte {
	if transposed {
		return 'T'
	}
	return 'N'
}

var _ blas.SGEMM = (*handle)(nil)
