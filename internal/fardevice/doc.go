// Package fardevice is a device backend for tests, with memory that Go code cannot reach: addresses
// are reserved and fault, the content is elsewhere and is copied in and out as that of an
// accelerator is. Copies can be made to fail.
package fardevice
