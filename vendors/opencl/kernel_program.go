package opencl

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/device/opencl"
)

//go:embed prelude.cl
var prelude string

//go:embed philox.cl
var philox string

// programVariant is what is fixed when a program is built.
type programVariant interface {
	comparable

	// Options returns the options of the compiler.
	Options() []string
}

// kernelProgram is the source of a family with the kernels that were made of it. It is safe for
// concurrent use.
type kernelProgram[V programVariant] struct {
	name, source string
	label        string

	mu    sync.Mutex // serialises builds
	built atomic.Pointer[map[key[V]]*opencl.Kernel]
}

type key[V programVariant] struct {
	device  *opencl.Device
	variant V
	kernel  string
}

// newKernelProgram returns a program with a name for messages. Nothing is built yet.
func newKernelProgram[V programVariant](name, source string) *kernelProgram[V] {
	p := &kernelProgram[V]{name: name, source: prelude + source}
	sum := sha256.Sum256([]byte(p.source))
	p.label = fmt.Sprintf("%s %x", name, sum[:4])
	p.built.Store(&map[key[V]]*opencl.Kernel{})
	return p
}

// withPhilox returns the source after one of the random numbers of internal/random, for a program
// whose variants define W.
func withPhilox(source string) string { return philox + source }

// Label returns the name with a checksum of the source, for what is kept from one run to the next.
func (p *kernelProgram[V]) Label() string { return p.label }

// Kernel returns a kernel of a variant. The first call for a device and a variant builds it; others
// allocate nothing.
func (p *kernelProgram[V]) Kernel(d *opencl.Device, variant V, name string) (*opencl.Kernel, error) {
	k := key[V]{d, variant, name}
	if built, ok := (*p.built.Load())[k]; ok {
		return built, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if built, ok := (*p.built.Load())[k]; ok {
		return built, nil
	}
	program, err := d.Program(p.name, p.source, variant.Options()...)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", p.name, err)
	}
	built, err := program.Kernel(name)
	if err != nil {
		return nil, fmt.Errorf("kernel %s of %s: %w", name, p.name, err)
	}
	next := maps.Clone(*p.built.Load())
	next[k] = built
	p.built.Store(&next)
	return built, nil
}
