package cl

// What Info may be asked for, and other constants of the C header.
const (
	PlatformVersion = 0x0901
	PlatformName    = 0x0902
	PlatformVendor  = 0x0903

	DeviceTypeCPU         = 1 << 1
	DeviceTypeGPU         = 1 << 2
	DeviceTypeAccelerator = 1 << 3
	DeviceTypeAll         = DeviceTypeCPU | DeviceTypeGPU | DeviceTypeAccelerator

	DeviceType                    = 0x1000
	DeviceMaxComputeUnits         = 0x1002
	DeviceMaxWorkGroupSize        = 0x1004
	DeviceMaxWorkItemSizes        = 0x1005
	DevicePreferredVectorWidthF32 = 0x100A
	DeviceMaxClockFrequency       = 0x100C
	DeviceMaxMemAllocSize         = 0x1010
	DeviceGlobalMemSize           = 0x101F
	DeviceLocalMemType            = 0x1022
	DeviceLocalMemSize            = 0x1023
	DeviceEndianLittle            = 0x1026
	DeviceAvailable               = 0x1027
	DeviceCompilerAvailable       = 0x1028
	DeviceName                    = 0x102B
	DeviceVendor                  = 0x102C
	DeviceDriverVersion           = 0x102D
	DeviceVersion                 = 0x102F
	DeviceExtensions              = 0x1030
	DeviceDoubleFPConfig          = 0x1032
	DeviceHostUnifiedMemory       = 0x1035
	DeviceOpenCLCVersion          = 0x103D

	QueueProfilingEnable = 1 << 1
	MemReadWrite         = 1 << 0
	LocalMemDedicated    = 1

	EventCommandExecutionStatus = 0x11D3
	ProfilingCommandQueued      = 0x1280
	ProfilingCommandStart       = 0x1282
	ProfilingCommandEnd         = 0x1283

	ProgramBinarySizes = 0x1165
	ProgramBinaries    = 0x1166
	ProgramBuildLog    = 0x1183

	KernelNumArgs        = 0x1191
	KernelWorkGroupSize  = 0x11B0
	KernelLocalMemSize   = 0x11B2
	KernelPrivateMemSize = 0x11B4
)
