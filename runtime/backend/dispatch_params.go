package backend

import "strings"

// DispatchBlock is the parameter of a module that holds a dispatch policy, and
// DispatchPrefix begins the names of parameters that are single values of one.
const (
	DispatchBlock  = "dispatch"
	DispatchPrefix = "te_fl_"
)

// IsDispatchParam reports whether a parameter of a module belongs to the dispatch
// policy, which the program reads for every backend. An adapter passes over it.
func IsDispatchParam(name string) bool {
	return name == DispatchBlock || strings.HasPrefix(name, DispatchPrefix)
}
