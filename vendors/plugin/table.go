package plugin

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/vendors/abi"
)

// Bounds of what a description may hold.
const (
	mostOps    = 4096
	mostString = 256
)

// readStruct copies what both sides know of a struct that begins with its size.
func readStruct[T any](p uintptr, what string) (T, error) {
	var v T
	if p == 0 {
		return v, fmt.Errorf("%s is NULL", what)
	}
	if p%8 != 0 {
		return v, fmt.Errorf("%s lies at %#x, want an address that 8 divides", what, p)
	}
	declared := uintptr(*(*uint32)(pointer(p)))
	if declared < unsafe.Sizeof(v) || declared > 1<<16 {
		return v, fmt.Errorf("%s has struct_size %d, want at least %d; set it to sizeof", what, declared, unsafe.Sizeof(v))
	}
	return *(*T)(pointer(p)), nil
}

// pointer turns an address that C gave into a pointer.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// readString copies a string of C.
func readString(p uintptr, what string) (string, error) {
	if p == 0 {
		return "", nil
	}
	for n := range uintptr(mostString) {
		if *(*byte)(pointer(p + n)) == 0 {
			return string(unsafe.Slice((*byte)(pointer(p)), n)), nil
		}
	}
	return "", fmt.Errorf("%s has no end within %d bytes", what, mostString)
}

// entry is an op of a description.
type entry struct {
	op                                        string
	implID, vendor                            string
	kind, flags                               uint32
	priority                                  int
	isAvailable, supports, workspaceSize, run uintptr
}

// description is what a plugin says about itself.
type description struct {
	name, version string
	minor         uint32
	ops           []entry
}

// readDescription copies and checks the description at an address.
func readDescription(p uintptr) (description, error) {
	var d description
	table, err := readStruct[abi.Plugin](p, "primus_plugin")
	if err != nil {
		return d, err
	}
	if table.AbiMajor != abi.Major {
		return d, fmt.Errorf("it has ABI %d.%d, this program speaks %d.%d", table.AbiMajor, table.AbiMinor, abi.Major, abi.Minor)
	}
	if d.name, err = readString(table.Name, "name"); err != nil {
		return d, err
	}
	if d.version, err = readString(table.Version, "version"); err != nil {
		return d, err
	}
	d.minor = table.AbiMinor
	switch {
	case d.name == "":
		return d, fmt.Errorf("name is missing, want the name of the plugin")
	case table.NOps > mostOps:
		return d, fmt.Errorf("n_ops is %d, want at most %d", table.NOps, mostOps)
	case table.NOps > 0 && table.Ops == 0:
		return d, fmt.Errorf("ops is NULL, want %d ops", table.NOps)
	}
	for i := range uintptr(table.NOps) {
		e, err := readOp(*(*uintptr)(pointer(table.Ops + 8*i)), fmt.Sprintf("ops[%d]", i))
		if err != nil {
			return d, err
		}
		d.ops = append(d.ops, e)
	}
	return d, nil
}

func readOp(p uintptr, what string) (entry, error) {
	var e entry
	op, err := readStruct[abi.Op](p, what)
	if err != nil {
		return e, err
	}
	for _, s := range []struct {
		to   *string
		from uintptr
		name string
	}{{&e.op, op.Op, ".op"}, {&e.implID, op.ImplID, ".impl_id"}, {&e.vendor, op.Vendor, ".vendor"}} {
		if *s.to, err = readString(s.from, what+s.name); err != nil {
			return e, err
		}
	}
	e.kind, e.flags, e.priority = op.Kind, op.Flags, int(op.Priority)
	e.isAvailable, e.supports, e.workspaceSize, e.run = op.IsAvailable, op.Supports, op.WorkspaceSize, op.Run
	switch {
	case e.op == "":
		return e, fmt.Errorf("%s.op is missing, want the name of an op such as rmsnorm_fwd", what)
	case e.run == 0:
		return e, fmt.Errorf("%s.run of op %q is NULL", what, e.op)
	case e.flags&^uint32(abi.ThreadSafe|abi.Deterministic|abi.SameThread|abi.Async) != 0:
		return e, fmt.Errorf("%s.flags of op %q is %#x, which has unknown bits", what, e.op, e.flags)
	}
	return e, nil
}
