//go:build !amd64 || noasm

package kernel

// PrefetchRows does nothing without assembly.
func PrefetchRows(*byte, int, int, int) {}
