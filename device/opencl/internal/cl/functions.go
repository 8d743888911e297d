package cl

// Function numbers the functions of OpenCL 1.2 that the project calls.
type Function int

// The functions, named as in C without the prefix cl.
const (
	GetPlatformIDs Function = iota
	GetPlatformInfo
	GetDeviceIDs
	GetDeviceInfo
	CreateContext
	ReleaseContext
	CreateCommandQueue
	ReleaseCommandQueue
	CreateBuffer
	ReleaseMemObject
	EnqueueReadBuffer
	EnqueueWriteBuffer
	EnqueueCopyBuffer
	EnqueueFillBuffer
	EnqueueMarkerWithWaitList
	EnqueueBarrierWithWaitList
	Flush
	Finish
	WaitForEvents
	GetEventInfo
	GetEventProfilingInfo
	RetainEvent
	ReleaseEvent
	CreateUserEvent
	SetUserEventStatus
	CreateProgramWithSource
	CreateProgramWithBinary
	BuildProgram
	GetProgramBuildInfo
	GetProgramInfo
	ReleaseProgram
	CreateKernel
	ReleaseKernel
	SetKernelArg
	GetKernelWorkGroupInfo
	GetKernelInfo
	EnqueueNDRangeKernel

	functions // their number
)

var functionNames = [functions]string{
	GetPlatformIDs:             "clGetPlatformIDs",
	GetPlatformInfo:            "clGetPlatformInfo",
	GetDeviceIDs:               "clGetDeviceIDs",
	GetDeviceInfo:              "clGetDeviceInfo",
	CreateContext:              "clCreateContext",
	ReleaseContext:             "clReleaseContext",
	CreateCommandQueue:         "clCreateCommandQueue",
	ReleaseCommandQueue:        "clReleaseCommandQueue",
	CreateBuffer:               "clCreateBuffer",
	ReleaseMemObject:           "clReleaseMemObject",
	EnqueueReadBuffer:          "clEnqueueReadBuffer",
	EnqueueWriteBuffer:         "clEnqueueWriteBuffer",
	EnqueueCopyBuffer:          "clEnqueueCopyBuffer",
	EnqueueFillBuffer:          "clEnqueueFillBuffer",
	EnqueueMarkerWithWaitList:  "clEnqueueMarkerWithWaitList",
	EnqueueBarrierWithWaitList: "clEnqueueBarrierWithWaitList",
	Flush:                      "clFlush",
	Finish:                     "clFinish",
	WaitForEvents:              "clWaitForEvents",
	GetEventInfo:               "clGetEventInfo",
	GetEventProfilingInfo:      "clGetEventProfilingInfo",
	RetainEvent:                "clRetainEvent",
	ReleaseEvent:               "clReleaseEvent",
	CreateUserEvent:            "clCreateUserEvent",
	SetUserEventStatus:         "clSetUserEventStatus",
	CreateProgramWithSource:    "clCreateProgramWithSource",
	CreateProgramWithBinary:    "clCreateProgramWithBinary",
	BuildProgram:               "clBuildProgram",
	GetProgramBuildInfo:        "clGetProgramBuildInfo",
	GetProgramInfo:             "clGetProgramInfo",
	ReleaseProgram:             "clReleaseProgram",
	CreateKernel:               "clCreateKernel",
	ReleaseKernel:              "clReleaseKernel",
	SetKernelArg:               "clSetKernelArg",
	GetKernelWorkGroupInfo:     "clGetKernelWorkGroupInfo",
	GetKernelInfo:              "clGetKernelInfo",
	EnqueueNDRangeKernel:       "clEnqueueNDRangeKernel",
}

// String returns the name in C.
func (f Function) String() string { return functionNames[f] }
