package plugin

import (
	"fmt"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/vendors/abi"
)

// Bounds of what a description may hold.
const (
	maxOps     = 4096
	maxDevices = 64
	maxString  = 256
	maxLogText = 4096
)

var pluginName = regexp.MustCompile(`^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$`)

// readStruct copies the fields that both sides know of a struct that begins with its size, which
// has at least some bytes in every version.
func readStruct[T any](p, least uintptr, what string) (T, error) {
	var v T
	if p == 0 {
		return v, fmt.Errorf("%s is NULL", what)
	}
	if p%8 != 0 {
		return v, fmt.Errorf("%s is at %#x, want an address that is a multiple of 8", what, p)
	}
	declared := uintptr(*(*uint32)(pointer(p)))
	if declared < least || declared > 1<<16 {
		return v, fmt.Errorf("%s has struct_size %d, want at least %d; set it to sizeof and build against the header of this program", what, declared, least)
	}
	n := min(declared, unsafe.Sizeof(v))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), n), unsafe.Slice((*byte)(pointer(p)), n))
	return v, nil
}

// pointer turns an address that C gave into a pointer. At the end of the address
// space, where a struct would wrap around, is no more memory than at nil.
func pointer(p uintptr) unsafe.Pointer {
	if p > ^uintptr(1<<16) {
		p = 0
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// readString copies a C string that ends within a number of bytes.
func readString(p uintptr, most int, what string) (string, error) {
	if p == 0 {
		return "", nil
	}
	for n := range uintptr(most) {
		if *(*byte)(pointer(p + n)) == 0 {
			return string(unsafe.Slice((*byte)(pointer(p)), n)), nil
		}
	}
	return "", fmt.Errorf("%s has no end within %d bytes", what, most)
}

// entry is an op of a description.
type entry struct {
	op                                        string
	implID, vendor                            string
	kind, flags                               uint32
	priority                                  int
	isAvailable, supports, workspaceSize, run uintptr
	layout                                    uint64
	devices                                   []device.Type // nil for the CPU
}

// description is what a plugin says about itself.
type description struct {
	name, version string
	minor         uint32
	ops           []entry
}

// readDescription copies and checks the description at an address. Memory that
// cannot be read is an error, too.
func readDescription(p uintptr, anyKind bool) (d description, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if fault, ok := cause.(runtime.Error); ok {
			err = fmt.Errorf("its description points to memory that cannot be read: %w", fault)
		} else if cause != nil {
			panic(cause)
		}
	}()
	table, err := readStruct[abi.Plugin](p, unsafe.Sizeof(abi.Plugin{}), "primus_plugin")
	if err != nil {
		return d, err
	}
	if table.AbiMajor != abi.Major {
		return d, fmt.Errorf("it has ABI %d.%d, this program speaks %d.%d", table.AbiMajor, table.AbiMinor, abi.Major, abi.Minor)
	}
	if d.name, err = readString(table.Name, maxString, "name"); err != nil {
		return d, err
	}
	if d.version, err = readString(table.Version, maxString, "version"); err != nil {
		return d, err
	}
	d.minor = table.AbiMinor
	if err := checkDescription(&d); err != nil {
		return d, err
	}
	switch {
	case table.NOps > maxOps:
		return d, fmt.Errorf("n_ops is %d, want at most %d", table.NOps, maxOps)
	case table.NOps > 0 && table.Ops == 0:
		return d, fmt.Errorf("ops is NULL, want %d ops", table.NOps)
	}
	for i := range uintptr(table.NOps) {
		e, err := readOp(*(*uintptr)(pointer(table.Ops + 8*i)), fmt.Sprintf("ops[%d]", i), anyKind)
		if err != nil {
			return d, err
		}
		d.ops = append(d.ops, e)
	}
	return d, nil
}

// checkDescription returns what is wrong with the name and the version of a plugin.
func checkDescription(d *description) error {
	switch {
	case !pluginName.MatchString(d.name):
		return fmt.Errorf("given name %q, want words of letters, digits and _ joined by dots or dashes, such as acme_ops", d.name)
	case strings.ContainsFunc(d.version, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		return fmt.Errorf("given version %q, want printable characters, such as 1.2.0", d.version)
	}
	return nil
}

func readOp(p uintptr, what string, anyKind bool) (entry, error) {
	var e entry
	op, err := readStruct[abi.Op](p, abi.OpSize10, what)
	if err != nil {
		return e, err
	}
	for _, s := range []struct {
		to   *string
		from uintptr
		name string
	}{{&e.op, op.Op, ".op"}, {&e.implID, op.ImplID, ".impl_id"}, {&e.vendor, op.Vendor, ".vendor"}} {
		if *s.to, err = readString(s.from, maxString, what+s.name); err != nil {
			return e, err
		}
	}
	e.kind, e.flags, e.priority = op.Kind, op.Flags, int(op.Priority)
	e.isAvailable, e.supports, e.workspaceSize, e.run, e.layout = op.IsAvailable, op.Supports, op.WorkspaceSize, op.Run, op.Layout
	switch {
	case e.op == "":
		return e, fmt.Errorf("%s.op is missing, want the name of an op such as rmsnorm_fwd", what)
	case e.run == 0:
		return e, fmt.Errorf("%s.run of op %q is NULL", what, e.op)
	case e.kind != abi.KindVendor && !(anyKind && (e.kind == abi.KindFlagos || e.kind == abi.KindReference)):
		return e, fmt.Errorf("%s.kind of op %q is %s; impls of that kind are this program's own, want PRIMUS_KIND_VENDOR", what, e.op, kindName(e.kind))
	case e.flags&^uint32(abi.ThreadSafe|abi.Deterministic|abi.SameThread|abi.Async|abi.FlushesSubnormals) != 0:
		return e, fmt.Errorf("%s.flags of op %q is %#x, which has unknown bits", what, e.op, e.flags)
	}
	e.devices, err = readDevices(&op, what, e.op)
	return e, err
}

// readDevices copies the types of devices that an op is declared for.
func readDevices(op *abi.Op, what, name string) ([]device.Type, error) {
	n := op.NDeviceTypes
	switch {
	case n > maxDevices:
		return nil, fmt.Errorf("%s.n_device_types of op %q is %d, want at most %d", what, name, n, maxDevices)
	case n > 0 && (op.DeviceTypes == 0 || op.DeviceTypes%4 != 0):
		return nil, fmt.Errorf("%s.device_types of op %q is at %#x, want the address of %d numbers of 32 bits", what, name, op.DeviceTypes, n)
	}
	var types []device.Type
	for i := range uintptr(n) {
		t := *(*device.Type)(pointer(op.DeviceTypes + 4*i))
		switch {
		case t <= 0 || t > math.MaxInt16:
			return nil, fmt.Errorf("%s.device_types[%d] of op %q is %d, want a number of DLPack such as PRIMUS_DEVICE_OPENCL", what, i, name, t)
		case slices.Contains(types, t):
			return nil, fmt.Errorf("%s.device_types of op %q has %v twice", what, name, t)
		}
		types = append(types, t)
	}
	if len(types) == 1 && types[0] == device.TypeCPU {
		return nil, nil // as without the field
	}
	return types, nil
}

// kindName returns the name of the C constant of a kind.
func kindName(kind uint32) string {
	switch kind {
	case abi.KindFlagos:
		return "PRIMUS_KIND_FLAGOS"
	case abi.KindReference:
		return "PRIMUS_KIND_REFERENCE"
	}
	return fmt.Sprint(kind)
}
