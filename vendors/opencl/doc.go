// Package opencl serves ops on OpenCL devices with kernels of its own, which are written in OpenCL
// C 1.2 and lie in the binary. The operands are tensors of device/opencl; kernels are built for a
// device when an op first needs them, and an op returns when they are queued.
//
// # Concepts
//
// Each family of ops is a package with its source. Arithmetic is in f32; tensors are f32, bf16 or
// f16 in memory. Sums are added up in an order that does not depend on timing, so a run has the
// same bits each time on one device.
//
// # Errors
//
// An impl declines a call that it does not serve with an error that wraps opregistry.ErrUnsupported
// before it queues anything. Other errors are those of device/opencl.
package opencl
