package plugin

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/primus-fl/primus/vendors/loader"
)

// Settings are what Open needs.
type Settings struct {
	// Ops is the catalogue: the ops that plugins may implement.
	Ops []opregistry.Handle
	// Log receives what plugins log; nil drops it.
	Log *slog.Logger
	// Report is the result of a probe. With it, the availability of ops is taken from the probe,
	// and the library is not asked again.
	Report *Report
	// Device returns the backend of devices of a type, or why there is none. Without a Report it
	// decides whether an op for a device is available. Nil means that there are no devices.
	Device func(device.Type) (device.Backend, error)
	// Before, if it is not nil, is called with the name of each function of the plugin before it
	// runs, in Open, Report and Try.
	Before func(step string)
	// AnyKind allows impls of every kind, for ops of the program itself.
	AnyKind bool
}

func (s *Settings) before(format string, args ...any) {
	if s.Before != nil {
		s.Before(fmt.Sprintf(format, args...))
	}
}

// MaxPriority is the highest priority that an impl of a plugin can have, that of the vendors that
// are compiled in. A library cannot decide that it is preferred to them; a policy that names the
// vendor or the impl can.
const MaxPriority = 100

// Plugin is a shared library whose description was read and found right.
type Plugin struct {
	path string
	desc description
	tvm  *tvmLibrary // nil for a library that describes itself
	set  Settings
	host *abi.Host

	serial sync.Mutex // held in calls of ops that are not thread-safe
	thread *loader.Executor

	ops    []*pluginOp
	impls  []opregistry.Impl
	unused []UnusedOp

	trying   string // the name of the case in a trial; "" outside of trials
	stray    string // the first write in a trial by a function that may only read
	controls controls
}

// UnusedOp is an op of a plugin that this program does not use.
type UnusedOp struct {
	Op     string `json:"op"`
	Impl   string `json:"impl_id"`
	Reason string `json:"reason"`
}

// Open opens the library in a file and reads the description of its ops. It calls only the entry
// point of the library.
func Open(path string, set Settings) (*Plugin, error) {
	set.before("its constructors")
	lib, err := loader.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Plugin{path: path, set: set, unused: []UnusedOp{}}
	p.controls.add(p, "its constructors", lib.Change())
	if err := p.describe(lib); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	if err := p.complete(); err != nil {
		return nil, err
	}
	return p, nil
}

// Adopt reads the description of ops at an address in this process. They belong to the program that
// has given it, and are trusted as the program is.
func Adopt(table uintptr, set Settings) (*Plugin, error) {
	p := &Plugin{path: "of the program", set: set, unused: []UnusedOp{}}
	var err error
	if p.desc, err = readDescription(table, set.AnyKind); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.path, err)
	}
	p.path = p.desc.name
	return p, p.complete()
}

// complete makes the impls of a plugin that was described.
func (p *Plugin) complete() (err error) {
	if p.host, err = newHost(p.set.Log, p.desc.name); err == nil {
		err = p.makeImpls()
	}
	if err == nil {
		err = checkSource(p.Source())
	}
	if err != nil {
		return fmt.Errorf("plugin %s: %w", p.path, err)
	}
	return nil
}

// describe reads the description of the library, or makes it from its mapping file.
func (p *Plugin) describe(lib *loader.Library) error {
	mapping, err := readMapping(p.path)
	if err != nil {
		return err
	}
	entry, err := lib.Symbol(abi.EntryPoint)
	switch {
	case err == nil && mapping != nil:
		return fmt.Errorf("it exports %s and has a mapping file %s; want one of both", abi.EntryPoint, filepath.Base(p.path)+Suffix)
	case err != nil && mapping == nil:
		return fmt.Errorf("it exports no %s, so it is not a plugin for Primus-FL; functions for TVM FFI need a mapping file %s beside it", abi.EntryPoint, filepath.Base(p.path)+Suffix)
	case mapping != nil:
		p.tvm, p.desc, err = describeMapped(lib, mapping)
		return err
	}
	p.set.before("%s", abi.EntryPoint)
	table, change := new(loader.Guard).Call(entry, abi.Major, 0)
	p.controls.add(p, abi.EntryPoint, change)
	if table == 0 {
		return fmt.Errorf("it does not speak ABI %d.%d", abi.Major, abi.Minor)
	}
	p.set.before("reading its description")
	p.desc, err = readDescription(table, p.set.AnyKind)
	return err
}

// checkSource returns the error of registering a source in an empty registry.
func checkSource(src opregistry.Source) error { return opregistry.NewRegistry().Register(src) }

// Name returns the plugin's name for itself.
func (p *Plugin) Name() string { return p.desc.name }

// Version returns the plugin's version.
func (p *Plugin) Version() string { return p.desc.version }

// ABI returns the version of the interface that the plugin was built for, or tvm_ffi.
func (p *Plugin) ABI() string {
	if p.tvm != nil {
		return "tvm_ffi"
	}
	return fmt.Sprintf("%d.%d", abi.Major, p.desc.minor)
}

// Unused returns the ops of the plugin that are not used, with the reason.
func (p *Plugin) Unused() []UnusedOp { return p.unused }

// Control says which functions of the plugin have changed the floating-point environment, and how.
func (p *Plugin) Control() []string { return p.controls.list() }

// Source returns the ops of the plugin as a source with the plugin's name.
func (p *Plugin) Source() opregistry.Source {
	return opregistry.Source{Name: p.desc.name, Version: p.desc.version, Impls: p.impls}
}

// makeImpls makes an impl of every op of the description. One that was compiled for other arguments
// than the op has is not available.
func (p *Plugin) makeImpls() error {
	known := catalogueOf(p.set.Ops)
	for i, e := range p.desc.ops {
		leave := func(reason string) { p.unused = append(p.unused, UnusedOp{Op: e.op, Impl: e.implID, Reason: reason}) }
		op, ok := known[e.op]
		if !ok {
			reason := "this program's catalogue has no such op"
			if o, ok := foreign.Find(e.op); ok {
				reason += "; TransformerEngine-FL uses it to " + o.Purpose + "; here: " + o.Instead
			}
			leave(reason)
			continue
		}
		params, err := Layout(op)
		if err != nil {
			leave(err.Error())
			continue
		}
		o := &pluginOp{plugin: p, entry: e, handle: op, params: params}
		if p.tvm == nil {
			o.params, o.support.Without, o.misfit = known.fit(op, e.layout)
		} else {
			o.mapped, o.misfit = p.tvm.bindMapped(i, params)
			o.support = o.mapped.support()
		}
		if e.flags&abi.SameThread != 0 && p.thread == nil {
			p.thread = loader.StartExecutor(1)
		}
		o.support.Devices = e.devices
		o.frames.New = func() any { return &frame{} }
		p.ops = append(p.ops, o)
		p.impls = append(p.impls, opregistry.Impl{
			Op: op, ID: e.implID, Kind: opregistry.Kind(e.kind), Vendor: e.vendor, Priority: min(e.priority, MaxPriority),
			Run: opregistry.Untyped(op, o.run), Available: o.available, Determinism: determinism(e.flags), Support: o.support,
			FlushesSubnormals: flushes(e.flags),
		})
	}
	return nil
}

// pluginOp is an op of a plugin.
type pluginOp struct {
	plugin *Plugin
	entry
	handle  opregistry.Handle
	params  []opregistry.Param
	mapped  *tvmFunction // nil for an op of a library that describes itself
	support opregistry.Support
	misfit  error // why the op cannot be called with the arguments that it has in this program
	frames  sync.Pool
}

// enter calls f on the thread and with the lock that the flags of the op require.
func (o *pluginOp) enter(f func()) error {
	switch {
	case o.flags&abi.SameThread != 0:
		return o.plugin.thread.Do(f)
	case o.flags&abi.ThreadSafe == 0:
		o.plugin.serial.Lock()
		defer o.plugin.serial.Unlock()
	}
	f()
	return nil
}

// available returns why the op cannot run on this machine, nil when it can.
func (o *pluginOp) available() error {
	if o.misfit != nil {
		return o.misfit
	}
	if r := o.plugin.set.Report; r != nil {
		return r.Availability(o.op, o.implID)
	}
	if err := o.plugin.hasDevice(o.devices); err != nil {
		return err
	}
	if o.isAvailable == 0 {
		return nil
	}
	text := make([]byte, textBytes)
	var status int32
	err := o.enter(func() {
		status = int32(o.invoke(new(loader.Guard), "is_available", o.isAvailable, address(text), textBytes, 0, 0))
	})
	runtime.KeepAlive(text)
	switch {
	case err != nil:
		return err
	case status == abi.OK:
		return nil
	}
	return errors.New(errorText(text, fmt.Sprintf("its is_available returned %d", status)))
}

// hasDevice returns why there is no device of any of these types, nil when there is one.
func (p *Plugin) hasDevice(types []device.Type) error {
	var faults []error
	for _, t := range types {
		if t == device.TypeCPU {
			return nil
		}
		if p.set.Device == nil {
			faults = append(faults, fmt.Errorf("it serves operands on %v, of which this process has no devices", t))
			continue
		}
		if _, err := p.set.Device(t); err != nil {
			faults = append(faults, fmt.Errorf("it serves operands on %v: %w", t, err))
			continue
		}
		return nil
	}
	return errors.Join(faults...)
}

func (o *pluginOp) run(x *opregistry.Exec, args any) error {
	f := o.frames.Get().(*frame)
	defer o.frames.Put(f)
	if o.misfit != nil {
		return opregistry.Unsupported("%v", o.misfit)
	}
	f.fill(o.params, reflect.ValueOf(args), uintptr(unsafe.Pointer(o.plugin.host)))
	if err := o.accepts(f); err != nil {
		return err
	}
	watched := o.watch(args)
	err := o.enter(func() { f.status, f.err = o.call(f, x, watched) })
	runtime.KeepAlive(args)
	switch {
	case err != nil:
		return err
	case f.err != nil:
		return f.err
	case f.status == abi.OK:
		return nil
	case f.status == abi.Unsupported:
		return opregistry.Unsupported("%s", errorText(f.text[:], "the plugin declined"))
	case f.status == abi.OutOfMemory:
		return fmt.Errorf("%w: %s", device.ErrOutOfMemory, errorText(f.text[:], "the plugin returned 3"))
	case f.status == abi.DeviceLost:
		return fmt.Errorf("%w: %s", device.ErrLost, errorText(f.text[:], "the plugin returned 4"))
	}
	return errors.New(errorText(f.text[:], fmt.Sprintf("the plugin returned %d", f.status)))
}

// accepts returns why the op is not called with the operands of a frame, nil if it is.
func (o *pluginOp) accepts(f *frame) error {
	switch {
	case f.err != nil:
		return f.err
	case f.native != nil && f.onHost:
		return opregistry.Unsupported("operands on %v and in host memory, want one device", f.place)
	}
	return o.support.On(f.place.Type)
}

// call runs the functions of the op on a frame. An error is one of the device.
func (o *pluginOp) call(f *frame, x *opregistry.Exec, w *watch) (status int32, err error) {
	switch {
	case o.mapped != nil:
		return o.callMapped(f), nil
	case f.native != nil:
		return o.callOnDevice(f, x, w)
	}
	status, n := o.prepare(f, w)
	if status != abi.OK {
		return status, nil
	}
	if n > 0 {
		scratch := x.Scratch(int((n + 3) / 4))
		defer x.Release(scratch)
		f.call.Workspace, f.call.WorkspaceBytes = address(scratch), 4*uint64(len(scratch))
	}
	return o.execute(f), nil
}

// callOnDevice is call for operands in memory of a device.
func (o *pluginOp) callOnDevice(f *frame, x *opregistry.Exec, w *watch) (status int32, err error) {
	var n uint64
	inStream := func(use func()) error {
		return f.native.NativeStream(f.place.Index, x.Stream(), func(h device.Handles) error {
			f.call.Context, f.call.Device, f.call.Stream = h.Context, h.Device, h.Stream
			use()
			return nil
		})
	}
	if o.workspaceSize == 0 {
		err = inStream(func() {
			if status, _ = o.prepare(f, w); status == abi.OK {
				status = o.execute(f)
			}
		})
		return status, err
	}
	if err := inStream(func() { status, n = o.prepare(f, w) }); err != nil || status != abi.OK {
		return status, err
	}
	if n > 0 {
		scratch, release, err := f.native.NativeScratch(f.place.Index, x.Stream(), n)
		if err != nil {
			return abi.Failed, err
		}
		defer release()
		f.call.Workspace, f.call.WorkspaceOffset, _ = f.native.NativeMemory(scratch)
		f.call.WorkspaceBytes = n
	}
	err = inStream(func() { status = o.execute(f) })
	return status, err
}

// prepare asks whether the op serves the call and how much workspace it needs.
func (o *pluginOp) prepare(f *frame, w *watch) (status int32, workspace uint64) {
	call := uintptr(unsafe.Pointer(&f.call))
	if o.supports != 0 {
		o.announce("supports")
		status = int32(o.invoke(&f.guard, "supports", o.supports, call, 0, 0, 0))
		w.check(o.plugin, "supports")
		if status != abi.OK {
			return status, 0
		}
	}
	if o.workspaceSize != 0 {
		o.announce("workspace_size")
		workspace = uint64(o.invoke(&f.guard, "workspace_size", o.workspaceSize, call, 0, 0, 0))
		w.check(o.plugin, "workspace_size")
		if workspace > maxWorkspace {
			return f.fail(abi.Failed, fmt.Sprintf("workspace_size asks for %d bytes, want at most %d", workspace, uint64(maxWorkspace))), 0
		}
	}
	return abi.OK, workspace
}

// execute computes the op.
func (o *pluginOp) execute(f *frame) int32 {
	o.announce("run")
	return int32(o.invoke(&f.guard, "run", o.entry.run, uintptr(unsafe.Pointer(&f.call)), 0, 0, 0))
}

// invoke calls a function of the op, which may not change the floating-point environment.
func (o *pluginOp) invoke(g *loader.Guard, function string, fn, a0, a1, a2, a3 uintptr) uintptr {
	result, change := g.Call4(fn, a0, a1, a2, a3)
	if !change.IsZero() {
		o.plugin.controls.add(o.plugin, fmt.Sprintf("%s of impl %q of op %q", function, o.implID, o.op), change)
	}
	return result
}

// maxWorkspace is more than any op needs.
const maxWorkspace = 1 << 34
