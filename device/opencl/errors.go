package opencl

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// Error is a call of OpenCL that failed. It matches device.ErrOutOfMemory and device.ErrLost where
// the code says so.
type Error struct {
	Device string // which device, with the driver's name for it
	Doing  string // what the call was for
	Call   string // the function, such as "clEnqueueNDRangeKernel"
	Code   int    // its result
	Name   string // the name of the result, such as "CL_OUT_OF_RESOURCES"
	Advice string // what to do; may be empty
}

// Error returns everything in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("opencl: %s: %s: %s: %s", e.Device, e.Doing, e.Call, e.Name)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Is reports whether the code means what a sentinel of the package device says.
func (e *Error) Is(target error) bool {
	switch cl.Code(e.Code) {
	case cl.MemObjectAllocationFailure, cl.OutOfResources, cl.OutOfHostMemory, cl.InvalidBufferSize:
		return target == device.ErrOutOfMemory
	case cl.DeviceNotAvailable:
		return target == device.ErrLost
	default:
		return false
	}
}

var advice = map[cl.Code]string{
	cl.MemObjectAllocationFailure:         "use a smaller batch or model, or recompute activations",
	cl.OutOfResources:                     "use a smaller batch or model; on a GPU a fault in a kernel reports the same code, and the system's log says more",
	cl.OutOfHostMemory:                    "free memory of the host",
	cl.InvalidBufferSize:                  "the device has a limit for one block (max_block in \"primus devices list\")",
	cl.DeviceNotAvailable:                 "the device is gone: look in the system's log, reset it or restart the machine, and resume from the last checkpoint",
	cl.ExecStatusErrorForEventsInWaitList: "work that was queued before failed",
	cl.InvalidWorkGroupSize:               "the work-group is larger than the kernel or the device allows",
}

// fail returns an error of a call with the device and what the call was for.
func (d *Device) fail(err error, format string, args ...any) error {
	failure, ok := errors.AsType[*cl.Error](err)
	if !ok {
		return fmt.Errorf("opencl: %v: %s: %w", d, fmt.Sprintf(format, args...), err)
	}
	return &Error{
		Device: d.String(), Doing: fmt.Sprintf(format, args...), Call: failure.Call,
		Code: int(failure.Code), Name: failure.Code.String(), Advice: advice[failure.Code],
	}
}
