package backend

import (
	"slices"
	"strings"
)

// DispatchBlock is the parameter of a module that holds a dispatch policy, and
// DispatchPrefix begins the names of parameters that are single values of one.
const (
	DispatchBlock  = "dispatch"
	DispatchPrefix = "te_fl_"
)

// RankOps is the parameter of a module that sends the ops of a Python framework through the op
// managers of its processes, which are followed like that of this program.
const RankOps = "primus_ops"

// runtimeParams are parameters that the runtime reads for every backend.
var runtimeParams = []string{DispatchBlock, RankOps, "stage", "sink_level", "file_sink_level", "stderr_sink_level"}

// IsDispatchParam reports whether a parameter of a module belongs to the dispatch
// policy, which the program reads for every backend.
func IsDispatchParam(name string) bool {
	return name == DispatchBlock || strings.HasPrefix(name, DispatchPrefix)
}

// IsRuntimeParam reports whether the program reads a parameter of a module for every backend.
// Adapters ignore such parameters.
func IsRuntimeParam(name string) bool {
	return IsDispatchParam(name) || slices.Contains(runtimeParams, name)
}
