package openblas

import (
	"runtime"
	"unsafe"

	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/loader"
)

// slot is the memory of one call of Fortran's sgemm, which takes every argument by address. It lies
// on the heap, so its addresses, which args holds, do not change.
type slot struct {
	fn             uintptr
	transA, transB byte
	m, n, k        int32
	lda, ldb, ldc  int32
	alpha, beta    float32
	args           [15]uintptr
	run            func()
}

// The arguments of sgemm that differ from call to call.
const (
	argA = 6
	argB = 8
	argC = 11
)

func newSlot(sgemm uintptr) *slot {
	s := &slot{fn: sgemm}
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	s.args = [15]uintptr{
		at(unsafe.Pointer(&s.transA)), at(unsafe.Pointer(&s.transB)),
		at(unsafe.Pointer(&s.m)), at(unsafe.Pointer(&s.n)), at(unsafe.Pointer(&s.k)),
		at(unsafe.Pointer(&s.alpha)), 0, at(unsafe.Pointer(&s.lda)), 0, at(unsafe.Pointer(&s.ldb)),
		at(unsafe.Pointer(&s.beta)), 0, at(unsafe.Pointer(&s.ldc)),
		1, 1, // lengths of the two flags, which Fortran compilers append
	}
	s.run = s.call
	return s
}

// SGEMM computes p. It waits while all slots are in use.
//
// The pthreads build has one pool of threads for all callers, so the call is made on the caller's
// thread. The OpenMP build has one pool for each calling OS thread, so calls are made on fixed
// threads.
func (h *handle) SGEMM(p *blas.Product) error {
	s := <-h.slots
	s.set(p)
	var err error
	if h.fixed == nil {
		s.run()
	} else {
		err = h.fixed.Do(s.run)
	}
	h.slots <- s
	return err
}

// set fills the arguments. Fortran's matrices are column-major, so the operands are exchanged.
func (s *slot) set(p *blas.Product) {
	s.transA, s.transB = flag(p.TransRight), flag(p.TransLeft)
	s.m, s.n, s.k = int32(p.N), int32(p.M), int32(p.K)
	s.alpha, s.beta = p.Alpha, p.Beta
	s.lda, s.ldb, s.ldc = int32(p.LDRight), int32(p.LDLeft), int32(p.LDOut)
	s.args[argA] = uintptr(p.Right)
	s.args[argB] = uintptr(p.Left)
	s.args[argC] = uintptr(p.Out)
}

func (s *slot) call() {
	loader.Call(s.fn, s.args[:]...)
	runtime.KeepAlive(s)
}

func flag(transposed bool) byte {
	if transposed {
		return 'T'
	}
	return 'N'
}

var _ blas.SGEMM = (*handle)(nil)
