package opencl

import "github.com/primus-fl/primus/device/opencl/internal/cl"

// Inject makes calls of a function fail with a code once this many of them have succeeded, up to a
// number of failures; restore ends that.
func (b *Backend) Inject(fn cl.Function, code cl.Code, after, failures int) (restore func()) {
	sys, err := b.open()
	if err != nil {
		panic(err)
	}
	sys.lib.Inject(func(called cl.Function) cl.Code {
		if called != fn {
			return cl.Success
		}
		if after--; after >= 0 {
			return cl.Success
		}
		if failures--; failures >= 0 {
			return code
		}
		return cl.Success
	})
	return func() { sys.lib.Inject(nil) }
}

// NewCachingPoCL returns a backend that keeps programs of PoCL, too.
func NewCachingPoCL(options Options) *Backend {
	b := New(options)
	b.cachePoCL = true
	return b
}

// Watch calls f with every function that is called.
func (b *Backend) Watch(f func(fn cl.Function)) {
	sys, err := b.open()
	if err != nil {
		panic(err)
	}
	sys.lib.Inject(func(fn cl.Function) cl.Code {
		f(fn)
		return cl.Success
	})
}
