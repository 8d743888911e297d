//go:build amd64 && !noasm

// Package prefetch asks the processor for data before it is used.
package prefetch

// Rows brings every cache line that rows of n bytes touch, which lie pitch bytes apart, into a
// second-level cache. rows and n are at least 1. It changes no data.
//
//go:noescape
func Rows(p *byte, pitch, rows, n int)
