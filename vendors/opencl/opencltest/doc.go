// Package opencltest runs the conformance kit and other tests on OpenCL devices.
//
// OnDevice makes impls that serve operands on a device testable with operands in host memory: they
// are copied to the device before each call and back after it, with the memory between rows and
// around them. Oclgrind runs a test again on a simulated device that finds races between
// work-items, accesses outside of memory objects and reads of memory that was never written.
package opencltest
