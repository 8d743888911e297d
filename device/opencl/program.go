package opencl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// Program is a source that was built for one device.
type Program struct {
	device *Device
	name   string
	handle uintptr

	mu      sync.Mutex
	kernels map[string]*Kernel
}

// programs are the programs of a device by source and options.
type programs struct {
	mu    sync.Mutex
	built map[string]*build
}

// build is a program that is built once.
type build struct {
	once    sync.Once
	program *Program
	err     error
}

// prelude stands before every source. A kernel declares a tensor that it is launched with as
//
//	__kernel void scale(BUFFER(float, x), float by) {
//		TENSOR(float, x);
//		x[get_global_id(0)] *= by;
//	}
const prelude = `#define BUFFER(type, name) __global type *name##_memory, ulong name##_offset
#define TENSOR(type, name) __global type *name = name##_memory + name##_offset
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#line 1
`

// BuildError is a source that does not compile.
type BuildError struct {
	Program string
	Device  string
	Options string
	Log     string // what the compiler says
}

// shownLines is how many lines of a log an error has: one mistake may follow from another.
const shownLines = 20

// Error returns the beginning of the log after a line that says what was built.
func (e *BuildError) Error() string {
	lines := strings.SplitAfterN(e.Log, "\n", shownLines+1)
	if len(lines) > shownLines {
		lines[shownLines] = fmt.Sprintf("and %d more lines", strings.Count(lines[shownLines], "\n")+1)
	}
	return fmt.Sprintf("opencl: build %s for %s with %q:\n%s", e.Program, e.Device, e.Options, strings.Join(lines, ""))
}

// Program returns a program of OpenCL C 1.2, which is built once per device, source and options.
// The name is for errors. BUFFER and TENSOR declare tensors:
//
//	__kernel void scale(BUFFER(float, x), float by) {
//		TENSOR(float, x);
//		x[get_global_id(0)] *= by;
//	}
//
// A source that does not compile is a *BuildError with the compiler's log, in the source's own line
// numbers.
func (d *Device) Program(name, source string, options ...string) (*Program, error) {
	if err := d.backend.check("build a program"); err != nil {
		return nil, err
	}
	if err := d.start(); err != nil {
		return nil, err
	}
	flags := strings.Join(append([]string{"-cl-std=CL1.2", "-w"}, options...), " ") // a compiler may print warnings to stderr
	key := flags + "\x00" + source
	p := &d.programs
	p.mu.Lock()
	if p.built == nil {
		p.built = make(map[string]*build)
	}
	entry := p.built[key]
	if entry == nil {
		entry = new(build)
		p.built[key] = entry
	}
	p.mu.Unlock()
	entry.once.Do(func() { entry.program, entry.err = d.build(name, source, flags) })
	return entry.program, entry.err
}

// build compiles a source.
func (d *Device) build(name, source, flags string) (*Program, error) {
	source = prelude + source
	file := d.cacheFile(source, flags)
	if handle, ok := d.cached(file, flags); ok {
		return newProgram(d, name, handle), nil
	}
	handle, err := d.fromSource(source)
	if err != nil {
		return nil, d.fail(err, "make program %s", name)
	}
	if err := d.compile(handle, flags); err != nil {
		defer func() { _ = d.lib.Call(cl.ReleaseProgram, handle) }()
		failure, ok := errors.AsType[*cl.Error](err)
		if ok && failure.Code == cl.BuildProgramFailure {
			return nil, &BuildError{Program: name, Device: d.String(), Options: flags, Log: d.buildLog(handle)}
		}
		return nil, d.fail(err, "build program %s", name)
	}
	d.keep(file, handle)
	return newProgram(d, name, handle), nil
}

func newProgram(d *Device, name string, handle uintptr) *Program {
	return &Program{device: d, name: name, handle: handle, kernels: make(map[string]*Kernel)}
}

func (d *Device) fromSource(source string) (uintptr, error) {
	text := []byte(source)
	list, lengths := []*byte{&text[0]}, []uintptr{uintptr(len(text))}
	return d.lib.Create(cl.CreateProgramWithSource, d.context, 1, uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&lengths[0])))
}

func (d *Device) compile(program uintptr, flags string) error {
	ids, text := []uintptr{d.id}, append([]byte(flags), 0)
	return d.lib.Call(cl.BuildProgram, program, 1, uintptr(unsafe.Pointer(&ids[0])), uintptr(unsafe.Pointer(&text[0])), 0, 0)
}

// buildLog returns what the compiler says of a program.
func (d *Device) buildLog(program uintptr) string {
	log, err := d.lib.InfoOf(cl.GetProgramBuildInfo, program, d.id, cl.ProgramBuildLog)
	if err != nil {
		return fmt.Sprintf("the log cannot be read: %v", err)
	}
	return strings.TrimSpace(strings.TrimRight(string(log), "\x00"))
}

// close releases programs and their kernels.
func (p *programs) close(d *Device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, entry := range p.built {
		if entry.program == nil {
			continue
		}
		for _, k := range entry.program.kernels {
			errs = append(errs, d.lib.Call(cl.ReleaseKernel, k.handle))
		}
		errs = append(errs, d.lib.Call(cl.ReleaseProgram, entry.program.handle))
	}
	p.built = nil
	return errors.Join(errs...)
}

// Kernel returns a kernel of the program. The kernel is made once.
func (p *Program) Kernel(name string) (*Kernel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kernels[name]; k != nil {
		return k, nil
	}
	k, err := p.newKernel(name)
	if err != nil {
		return nil, err
	}
	p.kernels[name] = k
	return k, nil
}
