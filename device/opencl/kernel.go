package opencl

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
	"github.com/primus-fl/primus/tensor"
)

// Kernel is a function of a program. It is safe for concurrent use: launches of one kernel set its
// arguments one after the other.
type Kernel struct {
	program      *Program
	name         string
	handle       uintptr
	maxWorkGroup int

	mu   sync.Mutex
	set  []setting // what each argument is set to
	call [9]uintptr
	work struct {
		value         [8]byte
		global, local [3]uintptr
		event         uintptr
	}
}

// setting is an argument of a kernel that was set.
type setting struct {
	size  uintptr
	value [8]byte
	chunk int // the serial number of the memory object; a handle may be used for another one later
	known bool
}

// Arg is an argument of a kernel. The functions Buf, I32 and the like make one.
type Arg struct {
	kind  argKind
	bits  uint64
	owner *tensor.Tensor
}

type argKind uint8

const (
	argTensor argKind = iota + 1
	arg32
	arg64
	argLocal
)

// Buf is a tensor, which takes two parameters of the kernel: BUFFER(type, name). A nil tensor is a
// null pointer.
func Buf(t *tensor.Tensor) Arg { return Arg{kind: argTensor, owner: t} }

// I32 is an int.
func I32(v int32) Arg { return Arg{kind: arg32, bits: uint64(uint32(v))} }

// U32 is a uint.
func U32(v uint32) Arg { return Arg{kind: arg32, bits: uint64(v)} }

// I64 is a long.
func I64(v int64) Arg { return Arg{kind: arg64, bits: uint64(v)} }

// U64 is a ulong.
func U64(v uint64) Arg { return Arg{kind: arg64, bits: v} }

// F32 is a float.
func F32(v float32) Arg { return Arg{kind: arg32, bits: uint64(math.Float32bits(v))} }

// F64 is a double.
func F64(v float64) Arg { return Arg{kind: arg64, bits: math.Float64bits(v)} }

// Local is a number of bytes of local memory: a parameter such as __local float *.
func Local(bytes int) Arg { return Arg{kind: argLocal, bits: uint64(bytes)} }

func (p *Program) newKernel(name string) (*Kernel, error) {
	d := p.device
	text := append([]byte(name), 0)
	handle, err := d.lib.Create(cl.CreateKernel, p.handle, uintptr(unsafe.Pointer(&text[0])))
	if err != nil {
		return nil, d.fail(err, "make kernel %s of program %s", name, p.name)
	}
	k := &Kernel{program: p, name: name, handle: handle}
	args, err := d.lib.Info(cl.GetKernelInfo, handle, cl.KernelNumArgs)
	if err == nil {
		k.set = make([]setting, binary.NativeEndian.Uint32(args))
		var limit []byte
		if limit, err = d.lib.InfoOf(cl.GetKernelWorkGroupInfo, handle, d.id, cl.KernelWorkGroupSize); err == nil {
			k.maxWorkGroup = int(binary.NativeEndian.Uint64(limit))
		}
	}
	if err != nil {
		_ = d.lib.Call(cl.ReleaseKernel, handle)
		return nil, d.fail(err, "describe kernel %s of program %s", name, p.name)
	}
	return k, nil
}

// Name returns the name of the kernel in its source.
func (k *Kernel) Name() string { return k.name }

// MaxWorkGroup returns how many work-items a work-group of the kernel may have on its device.
func (k *Kernel) MaxWorkGroup() int { return k.maxWorkGroup }

// Launch queues the kernel with one to three dimensions of global work-items and returns. The zero
// Stream is the default stream of the kernel's device. Local has as many dimensions, each of which
// divides that of global; nil leaves the choice to the driver. When a dimension of global is 0
// nothing is queued.
func (k *Kernel) Launch(s device.Stream, global, local []int, args ...Arg) error {
	d := k.program.device
	q, err := d.backend.queue("launch in", d, s)
	if err != nil {
		return err
	}
	if len(global) < 1 || len(global) > 3 || local != nil && len(local) != len(global) {
		return fmt.Errorf("opencl: launch %s: %d dimensions of global and %d of local work-items: want 1 to 3, the same for both", k.name, len(global), len(local))
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return fmt.Errorf("opencl: launch %s: stream %d is already freed", k.name, s)
	}
	if err := q.awaitFill(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.setArgs(args); err != nil {
		return err
	}
	for i, n := range global {
		if n == 0 {
			return nil
		}
		k.work.global[i] = uintptr(n)
	}
	k.call = [9]uintptr{q.handle, k.handle, uintptr(len(global)), 0, uintptr(unsafe.Pointer(&k.work.global)), 0, 0, 0, 0}
	if local != nil {
		for i, n := range local {
			k.work.local[i] = uintptr(n)
		}
		k.call[5] = uintptr(unsafe.Pointer(&k.work.local))
	}
	p := d.profile.Load()
	if p != nil {
		k.call[8] = uintptr(unsafe.Pointer(&k.work.event))
	}
	if err := d.lib.Call(cl.EnqueueNDRangeKernel, k.call[:]...); err != nil {
		return d.fail(err, "launch %s of %s over %v in groups of %v", k.name, k.program.name, slices.Clone(global), slices.Clone(local)) // so that the arguments do not escape
	}
	if p != nil {
		p.add(k.work.event, k.work.event)
	}
	return nil
}

// setArgs sets the arguments that differ from those of the last launch.
func (k *Kernel) setArgs(args []Arg) error {
	next := 0
	for i := range args {
		a := &args[i]
		n := 1
		if a.kind == argTensor {
			n = 2
		}
		if next+n > len(k.set) {
			return fmt.Errorf("opencl: launch %s of %s: %d arguments are too many: the kernel has %d parameters, two for each tensor", k.name, k.program.name, len(args), len(k.set))
		}
		var err error
		switch a.kind {
		case argTensor:
			err = k.setTensor(next, a.owner)
		case arg32:
			err = k.setValue(next, setting{size: 4, value: bytesOf(a.bits)})
		case arg64:
			err = k.setValue(next, setting{size: 8, value: bytesOf(a.bits)})
		case argLocal:
			err = k.setValue(next, setting{size: uintptr(a.bits), chunk: -1})
		default:
			err = fmt.Errorf("opencl: launch %s: argument %d is empty: make it with Buf, I32 and the like", k.name, i)
		}
		if err != nil {
			return err
		}
		next += n
	}
	if next != len(k.set) {
		return fmt.Errorf("opencl: launch %s of %s: %d arguments fill %d parameters: the kernel has %d, two for each tensor", k.name, k.program.name, len(args), next, len(k.set))
	}
	return nil
}

func bytesOf(bits uint64) (value [8]byte) {
	binary.NativeEndian.PutUint64(value[:], bits)
	return value
}

// setTensor sets the two parameters of a tensor.
func (k *Kernel) setTensor(i int, t *tensor.Tensor) error {
	var mem Buffer
	var offset uint64
	if t != nil {
		d, found, ok := Of(t)
		if !ok || d != k.program.device {
			return fmt.Errorf("opencl: launch %s of %s: parameter %d is %v, want memory of %v", k.name, k.program.name, i, t, k.program.device)
		}
		mem, offset = found, found.Offset/uint64(t.DType().Size())
	}
	if err := k.setValue(i, setting{size: 8, value: bytesOf(uint64(mem.Memory)), chunk: mem.serial}); err != nil {
		return err
	}
	return k.setValue(i+1, setting{size: 8, value: bytesOf(offset)})
}

// setValue sets a parameter unless it has that value.
func (k *Kernel) setValue(i int, to setting) error {
	to.known = true
	if k.set[i] == to {
		return nil
	}
	k.work.value = to.value
	value := uintptr(unsafe.Pointer(&k.work.value))
	if to.chunk < 0 {
		value = 0 // local memory
	}
	k.call = [9]uintptr{k.handle, uintptr(i), to.size, value}
	k.set[i].known = false
	if err := k.program.device.lib.Call(cl.SetKernelArg, k.call[:4]...); err != nil {
		return k.program.device.fail(err, "set parameter %d of %s of %s, %d bytes", i, k.name, k.program.name, to.size)
	}
	k.set[i] = to
	return nil
}
