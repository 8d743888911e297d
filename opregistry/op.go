package opregistry

import (
	"reflect"
	"regexp"
	"unsafe"

	"github.com/primus-fl/primus/device"
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
	Masked bool // −∞ in it is not a fault: it stands for what is left out
}

// Schema describes an op.
type Schema[A any] struct {
	// Doc is one sentence for `primus ops list`.
	Doc string

	// Formula says in plain text what the op computes: a reader needs nothing else to implement it.
	// It ends with a paragraph "Example:" and calls with small numbers. The tabs of its first line
	// are taken from all lines.
	Formula string

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
	Check func(c *Check, a *A)

	// Access returns what a call does to an operand whose access is depends; i is the index in a
	// list.
	Access func(a *A, operand string, i int) Access
}

// Op is the typed handle of an op with argument struct A. It is immutable; a program has one handle
// per op, made by NewOp.
type Op[A any] struct{ description }

// Handle is an Op of any argument type. Only *Op implements it.
type Handle interface {
	// Name returns the name of the op, such as "rmsnorm_fwd".
	Name() string
	// Doc returns one sentence about the op.
	Doc() string
	// Formula says what the op computes, with an example.
	Formula() string
	// Family returns the family that the op belongs to, or "".
	Family() string
	// Forward reports whether the op writes the saved state of its family.
	Forward() bool
	// Args returns the type of the argument struct.
	Args() reflect.Type
	// Params describes the arguments, in the order of their fields.
	Params() []Param
	// Tolerance returns how far the results of two correct impls may be apart.
	Tolerance() Tolerance
	describe() *description
}

// Func is the signature of an impl of an op with argument struct A.
type Func[A any] = func(*Exec, A) error

var opName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// NewOp returns the handle of a new op. It panics when the name is not lower_snake. The description
// is compiled when the op is first used, which panics when the description is wrong: handles are
// written in programs, not read from input.
func NewOp[A any](name string, s Schema[A]) *Op[A] {
	o := &Op[A]{description{
		name: name, doc: s.Doc, formula: s.Formula, family: s.Family, forward: s.Forward, tolerance: s.Tolerance, where: s.Where, lists: s.Lists,
		args:   reflect.TypeFor[A](),
		run:    func(run any, x *Exec, args unsafe.Pointer) error { return run.(Func[A])(x, *(*A)(args)) },
		serves: func(call any, args unsafe.Pointer) error { return call.(func(A) error)(*(*A)(args)) },
		untype: func(f func(*Exec, any) error) any { return Func[A](func(x *Exec, a A) error { return f(x, a) }) },
	}}
	if check := s.Check; check != nil {
		o.check = func(c *Check, args unsafe.Pointer) { check(c, (*A)(args)) }
	}
	if access := s.Access; access != nil {
		o.access = func(args unsafe.Pointer, operand string, i int) Access { return access((*A)(args), operand, i) }
	}
	o.named()
	return o
}

// Validate checks the arguments of a call. It returns an *ArgError and allocates nothing when they
// are right.
func (o *Op[A]) Validate(a A) error { return o.ValidateAt(&a) }

// ValidateAt is Validate without a copy of the arguments.
func (o *Op[A]) ValidateAt(a *A) error {
	_, err := o.Locate(a)
	return err
}

// Locate is ValidateAt that also returns where the operands lie. A call without operands lies on
// the host.
func (o *Op[A]) Locate(a *A) (device.Place, error) { return o.plan().validate(unsafe.Pointer(a)) }

// Operands lists the tensors of a call.
func (o *Op[A]) Operands(a A) []Operand { return o.At(&a).Operands() }

// Untyped returns an Impl.Run for an op whose argument struct is known by reflection only, for code
// that serves many ops in the same way. f receives the struct as its value. Each call allocates a
// copy of it.
func Untyped(op Handle, f func(x *Exec, args any) error) any { return op.describe().untype(f) }

// Saved is the record that a forward op fills and its backward op reads. It says which impl wrote
// the saved state, because the format of that state belongs to the impl. The zero value is ready to
// use. A Saved belongs to one forward and backward call at a time.
type Saved struct{ owner string }

// Owner returns the id of the impl that wrote the saved state, "" before the forward op has run.
func (s *Saved) Owner() string { return s.owner }

// SetOwner records the impl that wrote the saved state. The op manager calls it; a caller who runs
// impls directly need not.
func (s *Saved) SetOwner(id string) { s.owner = id }
