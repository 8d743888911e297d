package opregistry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// description is the part of an Op that does not depend on the type of its arguments.
type description struct {
	name, doc, family string
	formula           string
	forward           bool
	collective        bool
	tolerance         Tolerance
	args              reflect.Type
	where, lists      string
	depends           bool // the schema has Access

	// What has to know the type of the arguments: hooks returns the functions of the schema with a
	// copy of the arguments and is nil if there are none, run runs an Impl.Run, serves asks
	// a Support, and untype makes an Impl.Run of a function that gets the arguments as any.
	hooks  func(args unsafe.Pointer) hooks
	run    func(run any, x *Exec, args unsafe.Pointer) error
	serves func(s *Support, args unsafe.Pointer) error
	untype func(f func(*Exec, any) error) any
	parts  func(args unsafe.Pointer) CallParts // nil if the schema has none

	compiled atomic.Pointer[plan] // nil before the first use
}

func (d *description) describe() *description { return d }

// hooks are the functions of a schema, with the arguments of a call.
type hooks interface {
	// faultOf returns the *ArgError of Schema.Check, nil if the schema has none.
	faultOf() error
	// accessOf calls Schema.Access.
	accessOf(operand string, i int) Access
}

// hooksOf returns the hooks of a call, nil if the schema has none.
func (d *description) hooksOf(args unsafe.Pointer) hooks {
	if d.hooks == nil {
		return nil
	}
	return d.hooks(args)
}

// named panics unless the name of the op is lower_snake.
func (d *description) named() {
	if !opName.MatchString(d.name) {
		panic(fmt.Sprintf("BUG: opregistry: op name %q is not lower_snake", d.name))
	}
}

// plan returns what the description is compiled to.
func (d *description) plan() *plan {
	if p := d.compiled.Load(); p != nil {
		return p
	}
	return d.compile()
}

// compile compiles the description. It panics when that is wrong.
func (d *description) compile() *plan {
	defer func() {
		if cause := recover(); cause != nil {
			panic(fmt.Sprintf("BUG: opregistry: op %q: %v", d.name, cause))
		}
	}()
	p := compile(d.name, d.args, d.where, d.lists)
	depends := slices.ContainsFunc(p.operands, func(o operand) bool { return o.access.hook })
	switch {
	case (d.family != "") != (p.saved >= 0):
		fault("want both Family and a field of type *opregistry.Saved, or neither")
	case depends != d.depends:
		fault("want both an operand whose access depends and Access, or neither")
	}
	d.compiled.Store(p) // another goroutine may store an equal one
	return p
}

// Name returns the name of the op.
func (d *description) Name() string { return d.name }

// Doc returns one sentence about the op.
func (d *description) Doc() string { return d.doc }

// Formula says what the op computes, with an example.
func (d *description) Formula() string {
	text := strings.Trim(d.formula, "\n\t")
	before, _, _ := strings.Cut(d.formula, text)
	return strings.ReplaceAll(text, "\n"+strings.Trim(before, "\n"), "\n")
}

// Family returns the family that the op belongs to, or "".
func (d *description) Family() string { return d.family }

// Collective reports whether the result depends on calls of other processes.
func (d *description) Collective() bool { return d.collective }

// Forward reports whether the op writes the saved state of its family.
func (d *description) Forward() bool { return d.forward }

// Args returns the type of the argument struct.
func (d *description) Args() reflect.Type { return d.args }

// Params describes the arguments, in the order of their fields.
func (d *description) Params() []Param { return slices.Clone(d.plan().params) }

// Tolerance returns how far the results of two correct impls may be apart.
func (d *description) Tolerance() Tolerance { return d.tolerance }

// takes returns an error unless f, which the error calls what, is a non-nil function with the
// arguments of the op, after some others, and an error as its result.
func (d *description) takes(what string, f any, before ...reflect.Type) error {
	in := append(before, d.args)
	v := reflect.ValueOf(f)
	ok := v.Kind() == reflect.Func && !v.IsNil()
	if ok {
		t := v.Type()
		ok = t.Name() == "" && !t.IsVariadic() && t.NumIn() == len(in) && t.NumOut() == 1 && t.Out(0) == reflect.TypeFor[error]()
		for i := 0; ok && i < len(in); i++ {
			ok = t.In(i) == in[i]
		}
	}
	if ok {
		return nil
	}
	names := make([]string, len(in))
	for i, t := range in {
		names[i] = t.String()
	}
	return fmt.Errorf("given %s of type %T, want a non-nil func(%s) error", what, f, strings.Join(names, ", "))
}

// updated lists the operands that are updated, and those written that share memory with one that is
// read.
func updated(operands []Operand) []Operand {
	var found []Operand
	for i, w := range operands {
		if w.Tensor == nil || w.Access == AccessRead {
			continue
		}
		shared := w.Access == AccessUpdate
		for j, r := range operands {
			shared = shared || i != j && r.Access != AccessWrite && tensor.Overlap(w.Tensor, r.Tensor)
		}
		if shared {
			found = append(found, w)
		}
	}
	return found
}
