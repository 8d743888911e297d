package abi

import (
	_ "embed"
	"unsafe"
)

// The version of the interface.
const (
	Major = 1
	Minor = 2
)

// EntryPoint is the function that a plugin exports.
const EntryPoint = "primus_plugin_get_api"

// Results of functions of an op.
const (
	OK          = 0
	Unsupported = 1
	Failed      = 2
	OutOfMemory = 3
	DeviceLost  = 4
)

// Kinds of an implementation, with the values of opregistry.Kind.
const (
	KindFlagos    = 1
	KindVendor    = 2
	KindReference = 3
)

// Flags of an op.
const (
	ThreadSafe    = 1
	Deterministic = 2
	SameThread    = 4
	Async         = 8

	FlushesSubnormals = 16
)

// Types of devices, with the values of device.Type.
const (
	DeviceCPU    = 1
	DeviceCUDA   = 2
	DeviceOpenCL = 4
	DeviceROCM   = 10
)

// Sorts of an argument.
const (
	ArgAbsent  = 0
	ArgTensor  = 1
	ArgTensors = 2
	ArgLists   = 3
	ArgInt     = 4
	ArgFloat   = 5
	ArgInts    = 6
)

// Levels of log.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)

// Tensor is primus_tensor.
type Tensor struct {
	Data       uintptr
	DeviceType int32
	DeviceID   int32
	NDim       int32
	Code       uint8
	Bits       uint8
	Lanes      uint16
	Shape      uintptr
	Strides    uintptr
	ByteOffset uint64
}

// List is primus_tensor_list, primus_tensor_lists and primus_ints.
type List struct {
	Count uint64
	Items uintptr
}

// Arg is primus_arg.
type Arg struct {
	Sort     uint32
	Reserved uint32
	Value    uint64 // a pointer, an int64 or the bits of a float64
}

// Host is primus_host.
type Host struct {
	StructSize uint32
	Reserved   uint32
	Log        uintptr
	Alloc      uintptr
	Free       uintptr
}

// Call is primus_call.
type Call struct {
	StructSize     uint32
	NArgs          uint32
	Args           uintptr
	Stream         uintptr
	Workspace      uintptr
	WorkspaceBytes uint64
	Host           uintptr
	Error          uintptr
	ErrorBytes     uint64

	// Since 1.1.
	Context         uintptr
	Device          uintptr
	WorkspaceOffset uint64
}

// Op is primus_op.
type Op struct {
	StructSize    uint32
	Kind          uint32
	Op            uintptr
	ImplID        uintptr
	Vendor        uintptr
	Priority      int32
	Flags         uint32
	IsAvailable   uintptr
	Supports      uintptr
	WorkspaceSize uintptr
	Run           uintptr
	Layout        uint64

	// Since 1.1.
	DeviceTypes  uintptr
	NDeviceTypes uint32
	Reserved     uint32
}

// OpSize10 is the size of primus_op in version 1.0, the least that a plugin has.
const OpSize10 = unsafe.Offsetof(Op{}.DeviceTypes)

// Plugin is primus_plugin.
type Plugin struct {
	StructSize uint32
	AbiMajor   uint32
	AbiMinor   uint32
	NOps       uint32
	Name       uintptr
	Version    uintptr
	Ops        uintptr
}

//go:embed primus_op_plugin.h
var header string

//go:embed primus_op_args.h
var argsHeader string

// Header returns the text of primus_op_plugin.h.
func Header() string { return header }

// ArgsHeader returns the text of primus_op_args.h.
func ArgsHeader() string { return argsHeader }
