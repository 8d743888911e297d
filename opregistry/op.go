package opregistry

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// Access says what an op does to an operand.
type Access uint8

// The kinds of access. The zero Access is unspecified.
const (
	AccessUnspecified Access = iota
	AccessRead               // only read
	AccessWrite              // only written, every element of it
	AccessUpdate             // read and written: its previous content matters
)

// String returns the word of the access in tags.
func (a Access) String() string {
	return [...]string{"unspecified", "read", "write", "update"}[a]
}

// Operand is one tensor of a call, with the name that errors use for it.
type Operand struct {
	Name   string
	Tensor *tensor.Tensor // nil when the caller left it out
	Access Access
}

// Schema describes an op.
type Schema[A any] struct {
	// Doc is one sentence for `primus ops list`.
	Doc string

	// Family joins a forward and a backward op that exchange saved state. The ops of a family are
	// selected together. It is empty for an op without such a partner.
	Family string

	// Forward marks the op of a family that writes the saved state.
	Forward bool

	// Tolerance is how far the results of two correct impls may be apart.
	Tolerance Tolerance

	// Where says of arguments what their tags do not, or something else: "input [.. 2*h]; output
	// [.. h]". It serves ops that share an argument struct.
	Where string

	// Lists describes the lists of an argument of type [][]*tensor.Tensor, in order: "g read
	// compute; p update compute; master? update f32".
	Lists string

	// Check checks what the description cannot say. It runs when the arguments agree with the
	// description except for memory that they share. It allocates nothing when it finds no fault,
	// and keeps nothing.
	Check func(c *Check, a A)

	// Access returns what a call does to an operand whose access is depends; i is the index in a
	// list.
	Access func(a A, operand string, i int) Access

	// Validate, Operands, Lead and Saved serve ops whose argument struct has no tags.

	// Validate checks arguments before any impl runs. It returns an *ArgError
	// and allocates nothing when the arguments are right.
	Validate func(A) error

	// Operands lists the tensors of a call. It is not called on the hot path.
	Operands func(A) []Operand

	// Lead returns the operand whose dtype and shape are compared with the Support that impls
	// declare. Nil means the first one of Operands, which is slower.
	Lead func(A) *tensor.Tensor

	// Saved returns the record that the ops of a family share; required when Family is set.
	Saved func(A) *Saved
}

// Op is the typed handle of an op with argument struct A. It is immutable; a program has one handle
// per op, made by NewOp.
type Op[A any] struct {
	name   string
	schema Schema[A]
	params []Param
	layout uint64
}

// Handle is an Op of any argument type. Only *Op implements it.
type Handle interface {
	// Name returns the name of the op, such as "rmsnorm_fwd".
	Name() string
	// Doc returns one sentence about the op.
	Doc() string
	// Family returns the family that the op belongs to, or "".
	Family() string
	// Forward reports whether the op writes the saved state of its family.
	Forward() bool
	// Args returns the type of the argument struct.
	Args() reflect.Type
	// Params describes the arguments, in the order of their fields.
	Params() []Param
	// Layout returns a hash of the names, indexes and sorts of the arguments, which a plugin has to
	// agree with; 0 for an op that plugins cannot serve, because an argument has no form in C.
	Layout() uint64
	// Tolerance returns how far the results of two correct impls may be apart.
	Tolerance() Tolerance
	checkRun(run any) error
	checkSupport(call any) error
	untyped(f func(*Exec, any) error) any
	operandsOf(args any) []Operand
}

// Func is the signature of an impl of an op with argument struct A.
type Func[A any] = func(*Exec, A) error

var opName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// NewOp returns the handle of a new op. It panics when the name is not lower_snake or the
// description is wrong: handles are written in programs, not read from input.
func NewOp[A any](name string, s Schema[A]) *Op[A] {
	if !opName.MatchString(name) {
		panic(fmt.Sprintf("BUG: opregistry: op name %q is not lower_snake", name))
	}
	if s.Validate == nil && s.Operands == nil {
		return describe(name, s)
	}
	switch {
	case s.Validate == nil || s.Operands == nil:
		panic(fmt.Sprintf("BUG: opregistry: op %q needs Validate and Operands", name))
	case (s.Family != "") != (s.Saved != nil):
		panic(fmt.Sprintf("BUG: opregistry: op %q needs both Family and Saved or neither", name))
	}
	params := untaggedParams(reflect.TypeFor[A](), "", nil, nil)
	return &Op[A]{name: name, schema: s, params: params, layout: layoutOf(name, params)}
}

// describe returns the handle of an op whose argument struct has tags.
func describe[A any](name string, s Schema[A]) *Op[A] {
	defer func() {
		if cause := recover(); cause != nil {
			panic(fmt.Sprintf("BUG: opregistry: op %q: %v", name, cause))
		}
	}()
	p := compile(name, reflect.TypeFor[A](), s.Where, s.Lists)
	depends := slices.ContainsFunc(p.operands, func(o operand) bool { return o.access.hook })
	switch {
	case (s.Family != "") != (p.saved >= 0):
		panic("want both Family and a field of type *opregistry.Saved, or neither")
	case depends != (s.Access != nil):
		panic("want both an operand whose access depends and Access, or neither")
	case s.Lead != nil || s.Saved != nil:
		panic("want tags instead of Lead and Saved")
	}
	if s.Check != nil {
		p.check = func(c *Check, args unsafe.Pointer) { s.Check(c, *(*A)(args)) }
	}
	if s.Access != nil {
		p.access = func(args unsafe.Pointer, operand string, i int) Access { return s.Access(*(*A)(args), operand, i) }
	}
	s.Validate = func(a A) error { return p.validate(unsafe.Pointer(&a)) }
	s.Operands = func(a A) []Operand { return p.list(unsafe.Pointer(&a)) }
	s.Lead = func(a A) *tensor.Tensor { return p.leader(unsafe.Pointer(&a)) }
	if p.saved >= 0 {
		s.Saved = func(a A) *Saved { return *(**Saved)(unsafe.Add(unsafe.Pointer(&a), p.saved)) }
	}
	return &Op[A]{name: name, schema: s, params: p.params, layout: layoutOf(name, p.params)}
}

// Name returns the name of the op.
func (o *Op[A]) Name() string { return o.name }

// Doc returns one sentence about the op.
func (o *Op[A]) Doc() string { return o.schema.Doc }

// Family returns the family that the op belongs to, or "".
func (o *Op[A]) Family() string { return o.schema.Family }

// Forward reports whether the op writes the saved state of its family.
func (o *Op[A]) Forward() bool { return o.schema.Forward }

// Validate checks the arguments of a call.
func (o *Op[A]) Validate(a A) error { return o.schema.Validate(a) }

// Validator returns the function that Validate calls.
func (o *Op[A]) Validator() func(A) error { return o.schema.Validate }

// Saved returns the record of the family's saved state, or nil for an op without a family.
func (o *Op[A]) Saved(a A) *Saved {
	if o.schema.Saved == nil {
		return nil
	}
	return o.schema.Saved(a)
}

// Operands lists the tensors of a call.
func (o *Op[A]) Operands(a A) []Operand { return o.schema.Operands(a) }

// Leader returns the function that Lead calls, or nil where the schema has none.
func (o *Op[A]) Leader() func(A) *tensor.Tensor { return o.schema.Lead }

// Lead returns the lead operand of a call, nil when there is none.
func (o *Op[A]) Lead(a A) *tensor.Tensor {
	if o.schema.Lead != nil {
		return o.schema.Lead(a)
	}
	if operands := o.schema.Operands(a); len(operands) > 0 {
		return operands[0].Tensor
	}
	return nil
}

// Updated lists the operands whose old content would be lost if an impl failed half-way: those that
// are updated, and those written that share memory with one that is read.
func (o *Op[A]) Updated(a A) []Operand { return updated(o.schema.Operands(a)) }

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

func (o *Op[A]) checkRun(run any) error {
	if f, ok := run.(Func[A]); ok && f != nil {
		return nil
	}
	var want Func[A]
	return fmt.Errorf("got Run of type %T, want a non-nil %T", run, want)
}

// Params describes the arguments, in the order of their fields.
func (o *Op[A]) Params() []Param { return slices.Clone(o.params) }

// Layout returns a hash of the names, indexes and sorts of the arguments, 0 for an op that plugins
// cannot serve.
func (o *Op[A]) Layout() uint64 { return o.layout }

// Tolerance returns how far the results of two correct impls may be apart.
func (o *Op[A]) Tolerance() Tolerance { return o.schema.Tolerance }

// Args returns the type of the argument struct.
func (o *Op[A]) Args() reflect.Type { return reflect.TypeFor[A]() }

func (o *Op[A]) untyped(f func(*Exec, any) error) any {
	return Func[A](func(x *Exec, a A) error { return f(x, a) })
}

// Untyped returns an Impl.Run for an op whose argument struct is known by reflection only, for code
// that serves many ops in the same way. f receives the struct as its value. Each call allocates a
// copy of it.
func Untyped(op Handle, f func(x *Exec, args any) error) any { return op.untyped(f) }

func (o *Op[A]) operandsOf(args any) []Operand { return o.schema.Operands(args.(A)) }

// OperandsOf lists the tensors of a call of an op whose argument struct is known by reflection
// only. It panics when args is not a value of that struct.
func OperandsOf(op Handle, args any) []Operand { return op.operandsOf(args) }

func (o *Op[A]) checkSupport(call any) error {
	if f, ok := call.(func(A) error); ok && f != nil {
		return nil
	}
	var want func(A) error
	return fmt.Errorf("got Support.Call of type %T, want a non-nil %T", call, want)
}

// Saved is the record that a forward op fills and its backward op reads. It says which impl wrote
// the saved state, because the format of that state belongs to the impl. The zero value is ready to
// use. A Saved belongs to one forward and backward call at a time.
type Saved struct{ owner string }

// Owner returns the id of the impl that wrote the saved state, "" before the forward op has run.
func (s *Saved) Owner() string { return s.owner }

// SetOwner records the impl that wrote the saved state. The op manager calls it; a caller who runs
// impls directly need not.
func (s *Saved) SetOwner(id string) { s.owner = id }
