package plugin

import (
	"fmt"
	"slices"
	"strconv"
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

// LayoutHash returns primus_op.layout of an op: a hash of its name and of the indexes, names and
// sorts of its arguments, 0 if one has no form in C. The hash of the first arguments is a step of
// that of all, which shows whether a library knows all of them.
func LayoutHash(op opregistry.Handle) uint64 {
	params, err := Layout(op)
	if err != nil {
		return 0
	}
	h := hashOf(op.Name())
	for i, p := range params {
		h = h.with(i, argument{p.Macro(), p.Sort})
	}
	return uint64(h)
}

// Known returns how many of the arguments of an op, from the first on, a caller with a layout was
// compiled with. The error says that it was compiled with others.
func Known(op opregistry.Handle, layout uint64) (int, error) {
	params, err := Layout(op)
	if err != nil {
		return 0, err
	}
	n := hashOf(op.Name()).known(layout, 0, params)
	if n < 0 {
		return 0, fmt.Errorf("it was compiled %s; rebuild it against primus_op_args.h of this version", catalogue{op.Name(): op}.difference(op.Name(), params, layout))
	}
	return n, nil
}

// argument is what a layout says of an argument.
type argument struct {
	macro string
	sort  opregistry.Sort
}

// layoutHash is the state of an FNV-1a hash.
type layoutHash uint64

func hashOf(op string) layoutHash { return layoutHash(14695981039346656037).text(op).text("\n") }

func (h layoutHash) text(s string) layoutHash {
	for i := range len(s) {
		h = (h ^ layoutHash(s[i])) * 1099511628211
	}
	return h
}

func (h layoutHash) with(i int, a argument) layoutHash {
	var digits [20]byte
	for _, c := range strconv.AppendInt(digits[:0], int64(i), 10) {
		h = (h ^ layoutHash(c)) * 1099511628211
	}
	return h.text(":").text(a.macro).text(":").text(strconv.Itoa(int(a.sort))).text("\n")
}

// known returns how many of the arguments of an op, from the first on, a library with a layout was
// compiled with, −1 if it was compiled with others. Arguments may have had other names.
func (h layoutHash) known(layout uint64, i int, params []opregistry.Param) int {
	if uint64(h) == layout {
		return i
	}
	if i == len(params) {
		return -1
	}
	p := &params[i]
	n := h.with(i, argument{p.Macro(), p.Sort}).known(layout, i+1, params)
	for k := 0; n < 0 && k < len(p.Was); k++ {
		n = h.with(i, argument{opregistry.Macro(p.Was[k]), p.Sort}).known(layout, i+1, params)
	}
	return n
}

// fit returns the arguments of an op that a library with this layout may be called with, and the
// names of those that were added to the op since it was compiled. The error says why the library
// may not be called.
func (c catalogue) fit(op opregistry.Handle, layout uint64) (params []opregistry.Param, without []string, err error) {
	params, err = Layout(op)
	if err != nil {
		return nil, nil, err
	}
	const rebuild = "; rebuild it against primus_op_args.h of this version"
	if layout == 0 {
		return nil, nil, fmt.Errorf("op %q has no layout; set .layout of its primus_op to PRIMUS_%s_LAYOUT of primus_op_args.h", op.Name(), strings.ToUpper(op.Name()))
	}
	n := hashOf(op.Name()).known(layout, 0, params)
	if n < 0 {
		return nil, nil, fmt.Errorf("it was compiled %s%s", c.difference(op.Name(), params, layout), rebuild)
	}
	for _, p := range params[n:] {
		if !p.Optional {
			return nil, nil, fmt.Errorf("it was compiled before op %q had argument %q, which every call gives%s", op.Name(), p.Name, rebuild)
		}
		without = append(without, p.Name)
	}
	return params[:n], without, nil
}

// catalogue is the ops that plugins may implement, by name.
type catalogue map[string]opregistry.Handle

func catalogueOf(ops []opregistry.Handle) catalogue {
	c := catalogue{}
	for _, op := range ops {
		c[op.Name()] = op
	}
	return c
}

// macros returns the names that arguments of any op have or had in C.
func (c catalogue) macros() []string {
	var names []string
	for _, op := range c {
		for _, p := range op.Params() {
			names = append(names, p.Macro())
			for _, w := range p.Was {
				names = append(names, opregistry.Macro(w))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// difference says with which arguments a library was compiled that has another layout than an op.
// It finds one argument that was removed, added, moved, exchanged with another or given another
// sort, also when others have been appended since.
func (c catalogue) difference(op string, params []opregistry.Param, layout uint64) string {
	all := make([]argument, len(params))
	before := make([]layoutHash, len(params)+1) // before[i] is the hash of the first i arguments
	before[0] = hashOf(op)
	for i, p := range params {
		all[i] = argument{p.Macro(), p.Sort}
		before[i+1] = before[i].with(i, all[i])
	}
	// is reports whether the library was compiled with the first arguments and then with others.
	is := func(first int, others ...[]argument) bool {
		h, i := before[first], first
		for _, list := range others {
			for _, a := range list {
				h = h.with(i, a)
				i++
			}
		}
		return uint64(h) == layout
	}
	for n := len(all); n > 0; n-- {
		for i, a := range all[:n] {
			for sort := opregistry.SortTensor; sort <= opregistry.SortInts; sort++ {
				if is(i, []argument{{a.macro, sort}}, all[i+1:n]) {
					return fmt.Sprintf("with argument %q of op %q as %v, which is %v now", params[i].Name, op, sort, a.sort)
				}
			}
			if is(i, all[i+1:n]) {
				return fmt.Sprintf("without argument %q, which op %q has at index %d, before others", params[i].Name, op, i)
			}
			for k := i + 1; k < n; k++ {
				if is(i, all[k:k+1], all[i+1:k], all[i:i+1], all[k+1:n]) {
					return fmt.Sprintf("with arguments %q and %q of op %q in each other's place", params[i].Name, params[k].Name, op)
				}
				if is(i, all[i+1:k+1], all[i:i+1], all[k+1:n]) {
					return fmt.Sprintf("with argument %q of op %q at index %d, which is at %d now", params[i].Name, op, k, i)
				}
				if is(i, all[k:k+1], all[i:k], all[k+1:n]) {
					return fmt.Sprintf("with argument %q of op %q at index %d, which is at %d now", params[k].Name, op, i, k)
				}
			}
		}
	}
	for _, macro := range c.macros() {
		for sort := opregistry.SortTensor; sort <= opregistry.SortInts; sort++ {
			for i := range len(all) + 1 {
				if is(i, []argument{{macro, sort}}, all[i:]) {
					return fmt.Sprintf("with an argument %q (%v) at index %d, which op %q does not have", strings.ToLower(macro), sort, i, op)
				}
			}
		}
	}
	return fmt.Sprintf("for arguments of op %q that differ in several places from those of this program, or for a newer one (layout 0x%016x, this program has 0x%016x)", op, layout, uint64(before[len(all)]))
}
