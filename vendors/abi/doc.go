// Package abi is the binary interface between Primus-FL and ops in shared
// libraries: the C header primus_op_plugin.h, the generated primus_op_args.h with
// the index of each op's arguments, and the same structs in Go.
//
// The header is the definition; a test compiles it and compares every size and offset with the
// structs of this package. Within a major version structs only grow at their end.
package abi

//go:generate go run ../../internal/generate header primus_op_args.h ../../internal/plugin/testdata/layout.golden
