package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Layout returns the arguments of an op in the order of primus_call.args. An op with an argument
// that has no form in C is an error. The record of a family's saved state is not an argument in C.
func Layout(op opregistry.Handle) ([]opregistry.Param, error) {
	params := op.Params()
	for _, p := range params {
		if p.Index < 0 {
			return nil, fmt.Errorf("plugin: op %q: argument %s of type %v has no form in C", op.Name(), p.Name, p.Type)
		}
	}
	slices.SortFunc(params, func(a, b opregistry.Param) int { return a.Index - b.Index })
	return params, nil
}

// sameLayout returns why a library may not be called with the arguments that an op has in this
// program, nil when both agree on them.
func sameLayout(e *entry, op opregistry.Handle) error {
	switch {
	case e.layout == op.Layout():
		return nil
	case e.layout == 0:
		return fmt.Errorf("op %q has no layout; set .layout of its primus_op to PRIMUS_%s_LAYOUT of primus_op_args.h", op.Name(), strings.ToUpper(op.Name()))
	}
	return fmt.Errorf("it was compiled against another layout of %s (0x%016x, this program has 0x%016x); rebuild it against primus_op_args.h of this version",
		op.Name(), e.layout, op.Layout())
}
