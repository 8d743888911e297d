// Package opencltest runs the conformance kit and other tests on OpenCL devices.
//
// Conform copies operands to the device before each call and back after it. Oclgrind runs a test
// again on a simulated device that finds races between work-items, accesses outside of memory
// objects and reads of memory that was never written. A Faulty library makes calls of OpenCL fail.
package opencltest
