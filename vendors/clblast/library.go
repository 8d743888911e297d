package clblast

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/loader"
)

// vendor is the name of the vendor.
const vendor = "clblast"

// measured is the geometric mean over the products of docs/reference/performance.md, on a
// processor.
var measured = opregistry.Measurement{Rate: 0.04, By: "make bench-opencl"}

// Options configure a Library.
type Options struct {
	// Names are the sonames or paths to try, in order; nil means the usual sonames of CLBlast.
	Names []string
}

// Library is CLBlast as a source of impls. It is loaded once, when a method first needs it.
type Library struct {
	open func() (*handle, error)
}

// New returns a Library. Nothing is loaded yet.
func New(opts Options) *Library {
	return &Library{open: sync.OnceValues(func() (*handle, error) {
		h, err := load(opts.Names)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", vendor, err)
		}
		return h, nil
	})}
}

// Source returns the library's impl: vendor.clblast of generic_gemm. Every run would load the
// library if the registry were to ask whether it is available, so a call finds out.
func (l *Library) Source() opregistry.Source {
	return opregistry.Source{Name: vendor, Impls: []opregistry.Impl{{
		Op: gemm.GenericGemm, ID: "vendor." + vendor, Kind: opregistry.KindVendor, Vendor: vendor, Priority: 100, Run: l.gemm,
		Support:  opregistry.Support{Devices: []device.Type{device.TypeOpenCL}, DTypes: []tensor.DType{tensor.F32, tensor.F64}},
		Measured: measured,
	}}}
}

// Available returns nil when the library can be used, else why not.
func (l *Library) Available() error {
	_, err := l.open()
	return err
}

// Info describes the library that is loaded, or says why there is none.
func (l *Library) Info() string {
	h, err := l.open()
	if err != nil {
		return "not available: " + err.Error()
	}
	return "CLBlast, " + h.file
}

// handle is CLBlast, loaded. The functions are those of clblast_c.h.
type handle struct {
	file  string
	sgemm func(layout, transA, transB int32, m, n, k uintptr, alpha float32, a, aAt, aLD, b, bAt, bLD uintptr, beta float32, c, cAt, cLD uintptr, queue *uintptr, event uintptr) int32
	dgemm func(layout, transA, transB int32, m, n, k uintptr, alpha float64, a, aAt, aLD, b, bAt, bLD uintptr, beta float64, c, cAt, cLD uintptr, queue *uintptr, event uintptr) int32
}

func load(names []string) (*handle, error) {
	if names == nil {
		names = []string{"libclblast.so.1", "libclblast.so"}
		if runtime.GOOS == "darwin" {
			names = []string{"libclblast.1.dylib", "libclblast.dylib"}
		}
	}
	lib, err := loader.Open(names...)
	if err != nil {
		return nil, err
	}
	h := &handle{file: lib.Path()}
	if err := errors.Join(lib.Bind(&h.sgemm, "CLBlastSgemm"), lib.Bind(&h.dgemm, "CLBlastDgemm")); err != nil {
		return nil, fmt.Errorf("%s is not CLBlast: %w", h.file, err)
	}
	return h, nil
}
