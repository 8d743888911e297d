// Package driver holds what the device backends of this module have in common: tables of the
// handles that they give out, and the current device of each OS thread.
package driver
