//go:build amd64 && !noasm

package kernel

// PrefetchRows brings every cache line that rows of n bytes touch, which lie pitch bytes apart,
// into a second-level cache. rows and n are at least 1. It changes no data.
//
//go:noescape
func PrefetchRows(p *byte, pitch, rows, n int)
