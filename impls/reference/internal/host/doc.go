// Package host has what the oracles of several families share: the impl of a function that reads
// host memory, and sums over vectors in float64.
package host
