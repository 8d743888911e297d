// Package library is what libprimus does, without cgo: it opens op managers, binds ops and calls
// them with the arguments that C describes. Managers and bound ops are named by numbers, so that no
// pointer of Go reaches the caller.
//
// # Concurrency
//
// A Library is safe for concurrent use, and so are its managers and bound ops.
//
// # Errors
//
// Code returns the number that C gets for an error. Texts are those that a program in Go gets.
package library

//go:generate go run ../../../internal/generate bindings bindings.go
//go:generate go run ../../../internal/generate python ../../../python/primus_fl
