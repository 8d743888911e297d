package opencl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// Info is what a driver says of a device. Sizes are in bytes.
type Info struct {
	Index           int    `json:"index"`
	Name            string `json:"name"`
	Vendor          string `json:"vendor"`
	Kind            string `json:"kind"` // "cpu", "gpu" or "accelerator"
	Driver          string `json:"driver"`
	Version         string `json:"version"`   // of OpenCL that the device offers
	CVersion        string `json:"c_version"` // of OpenCL C
	Platform        string `json:"platform"`
	PlatformVersion string `json:"platform_version"`

	ComputeUnits     int      `json:"compute_units"`
	ClockMHz         int      `json:"clock_mhz"`
	Memory           uint64   `json:"memory"`       // global memory
	MaxBlock         uint64   `json:"max_block"`    // the largest allocation
	LocalMemory      uint64   `json:"local_memory"` // of a work-group
	LocalIsDedicated bool     `json:"local_is_dedicated"`
	Unified          bool     `json:"unified_memory"` // with the host
	MaxWorkGroup     int      `json:"max_work_group"` // work-items of a group
	MaxWorkItems     []int    `json:"max_work_items"` // of a group in each dimension
	VectorF32        int      `json:"vector_f32"`     // the width that the compiler prefers
	FP64             bool     `json:"fp64"`
	FP16             bool     `json:"fp16"`
	Extensions       []string `json:"extensions"`

	// Unusable says why the device cannot be used; "" when it can.
	Unusable string `json:"unusable,omitempty"`
}

// platform is a driver.
type platform struct {
	id            uintptr
	name, version string
}

// listPlatforms returns the drivers; none is no error.
func listPlatforms(lib *cl.Library) ([]platform, error) {
	count := make([]uint32, 1)
	err := lib.Call(cl.GetPlatformIDs, 0, 0, uintptr(unsafe.Pointer(&count[0])))
	if failure, ok := errors.AsType[*cl.Error](err); ok && failure.Code == cl.PlatformNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opencl: list the platforms of %s: %w", lib.Path(), err)
	}
	if count[0] == 0 {
		return nil, nil
	}
	ids := make([]uintptr, count[0])
	if err := lib.Call(cl.GetPlatformIDs, uintptr(len(ids)), uintptr(unsafe.Pointer(&ids[0])), 0); err != nil {
		return nil, fmt.Errorf("opencl: list the platforms of %s: %w", lib.Path(), err)
	}
	platforms := make([]platform, len(ids))
	for i, id := range ids {
		ask := asker{lib: lib, fn: cl.GetPlatformInfo, object: id}
		platforms[i] = platform{id: id, name: ask.text(cl.PlatformName), version: ask.text(cl.PlatformVersion)}
		if ask.err != nil {
			return nil, fmt.Errorf("opencl: describe platform %d of %s: %w", i, lib.Path(), ask.err)
		}
	}
	return platforms, nil
}

// devices returns the devices of a platform.
func (p platform) devices(lib *cl.Library) ([]uintptr, error) {
	count := make([]uint32, 1)
	err := lib.Call(cl.GetDeviceIDs, p.id, cl.DeviceTypeAll, 0, 0, uintptr(unsafe.Pointer(&count[0])))
	if failure, ok := errors.AsType[*cl.Error](err); ok && failure.Code == cl.DeviceNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opencl: list the devices of %s: %w", p.name, err)
	}
	if count[0] == 0 {
		return nil, nil
	}
	ids := make([]uintptr, count[0])
	if err := lib.Call(cl.GetDeviceIDs, p.id, cl.DeviceTypeAll, uintptr(len(ids)), uintptr(unsafe.Pointer(&ids[0])), 0); err != nil {
		return nil, fmt.Errorf("opencl: list the devices of %s: %w", p.name, err)
	}
	return ids, nil
}

// describe asks the driver about a device.
func describe(lib *cl.Library, p platform, id uintptr, index int) (Info, error) {
	ask := asker{lib: lib, fn: cl.GetDeviceInfo, object: id}
	info := Info{
		Index: index, Name: ask.text(cl.DeviceName), Vendor: ask.text(cl.DeviceVendor), Driver: ask.text(cl.DeviceDriverVersion),
		Version: ask.text(cl.DeviceVersion), CVersion: ask.text(cl.DeviceOpenCLCVersion), Platform: p.name, PlatformVersion: p.version,
		ComputeUnits: int(ask.number(cl.DeviceMaxComputeUnits)), ClockMHz: int(ask.number(cl.DeviceMaxClockFrequency)),
		Memory: ask.number(cl.DeviceGlobalMemSize), MaxBlock: ask.number(cl.DeviceMaxMemAllocSize), LocalMemory: ask.number(cl.DeviceLocalMemSize),
		LocalIsDedicated: ask.number(cl.DeviceLocalMemType) == cl.LocalMemDedicated, Unified: ask.number(cl.DeviceHostUnifiedMemory) != 0,
		MaxWorkGroup: int(ask.number(cl.DeviceMaxWorkGroupSize)), VectorF32: int(ask.number(cl.DevicePreferredVectorWidthF32)),
		Extensions: strings.Fields(ask.text(cl.DeviceExtensions)),
	}
	sizes := ask.raw(cl.DeviceMaxWorkItemSizes)
	for ; len(sizes) >= 8; sizes = sizes[8:] {
		info.MaxWorkItems = append(info.MaxWorkItems, int(binary.NativeEndian.Uint64(sizes)))
	}
	info.FP64 = slices.Contains(info.Extensions, "cl_khr_fp64")
	info.FP16 = slices.Contains(info.Extensions, "cl_khr_fp16")
	switch kind := ask.number(cl.DeviceType); {
	case kind&cl.DeviceTypeGPU != 0:
		info.Kind = "gpu"
	case kind&cl.DeviceTypeCPU != 0:
		info.Kind = "cpu"
	default:
		info.Kind = "accelerator"
	}
	switch {
	case ask.number(cl.DeviceAvailable) == 0:
		info.Unusable = "the driver says that it is not available"
	case ask.number(cl.DeviceCompilerAvailable) == 0:
		info.Unusable = "its driver has no compiler"
	case ask.number(cl.DeviceEndianLittle) == 0:
		info.Unusable = "it is big-endian"
	}
	if ask.err != nil {
		return Info{}, fmt.Errorf("opencl: describe device %d of %s: %w", index, p.name, ask.err)
	}
	return info, nil
}

// asker asks an object for values and keeps the first error.
type asker struct {
	lib    *cl.Library
	fn     cl.Function
	object uintptr
	err    error
}

func (a *asker) raw(what uintptr) []byte {
	value, err := a.lib.Info(a.fn, a.object, what)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%#x: %w", what, err)
	}
	return value
}

// text returns a string without the zero at its end and space around it.
func (a *asker) text(what uintptr) string {
	return strings.TrimSpace(strings.TrimRight(string(a.raw(what)), "\x00"))
}

// number returns an integer of 4 or 8 bytes.
func (a *asker) number(what uintptr) uint64 {
	switch value := a.raw(what); len(value) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(value))
	case 8:
		return binary.NativeEndian.Uint64(value)
	default:
		return 0
	}
}
