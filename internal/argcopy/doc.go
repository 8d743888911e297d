// Package argcopy copies the arguments of calls: all of them to keep what a call was given, or
// those on a device to the host and back.
package argcopy
