package blas

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// Handle is a library that is loaded.
type Handle interface {
	SGEMM

	// Info describes the library in one line: version, instructions, threads,
	// file, and a warning when its kernels are older than the CPU.
	Info() string

	// Version is that of the library, "" if it does not tell.
	Version() string
}

// Library is a vendor's library as a source of impls. It is loaded once, when a method first needs
// it.
type Library struct {
	name     string
	limits   Limits
	measured opregistry.Measurement
	open     func() (Handle, error)
}

// NewLibrary returns the Library of a vendor. Nothing is loaded yet; open loads it.
func NewLibrary(vendor string, limits Limits, measured opregistry.Measurement, open func() (Handle, error)) *Library {
	return &Library{name: vendor, limits: limits, measured: measured, open: sync.OnceValues(func() (Handle, error) {
		h, err := open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", vendor, err)
		}
		return h, nil
	})}
}

// Source returns the library's impl: vendor.<name> of generic_gemm.
func (l *Library) Source() opregistry.Source {
	dtypes := []tensor.DType{tensor.F32}
	if l.limits.MinBF16 > 0 {
		dtypes = append(dtypes, tensor.BF16)
	}
	return opregistry.Source{
		Name:           l.name,
		LibraryVersion: l.version,
		Impls: []opregistry.Impl{{
			Op:        gemm.GenericGemm,
			ID:        "vendor." + l.name,
			Kind:      opregistry.KindVendor,
			Vendor:    l.name,
			Priority:  100,
			Run:       l.gemm,
			Support:   opregistry.Support{DTypes: dtypes},
			Available: l.Available,
			Measured:  l.measured,

			FlushesSubnormals: l.limits.Flushes,
		}},
	}
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
	return h.Info()
}

// version returns the version of the library, "" if there is none.
func (l *Library) version() string {
	h, err := l.open()
	if err != nil {
		return ""
	}
	return h.Version()
}

// gemm is the impl; see Gemm for what it computes and declines.
func (l *Library) gemm(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
	h, err := l.open()
	if err != nil {
		return opregistry.Unsupported("%v", err)
	}
	return Gemm(x, a, h, l.limits)
}

// Threads returns how many threads a product should run on for a requested number; 0 requests
// GOMAXPROCS.
func Threads(asked int) int {
	if asked <= 0 {
		asked = runtime.GOMAXPROCS(0)
	}
	return min(asked, runtime.NumCPU())
}
