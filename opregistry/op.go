package opregistry

import (
	"reflect"
	"regexp"
	"sync"
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

	// Collective marks an op whose result depends on calls that other processes make at the same
	// time, so that a call cannot be run a second time to compare the results.
	Collective bool

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

	// Parts cuts a call into parts that can be computed apart from each other, for an op whose work
	// grows faster than its operands. Nil means that the work is about one operation for each
	// element, and that a call is one part.
	Parts func(a *A) Parts[A]
}

// Parts are the parts of a call that can be computed apart from each other.
type Parts[A any] struct {
	N    int     // their number
	Work float64 // the multiplications of one part, about
	// At returns the call that computes part i, from 0 to N-1, on views of the operands. Nil means
	// that the call is the only part.
	At func(i int) (Part[A], error)
}

// Part is a part of a call.
type Part[A any] struct {
	Args A
	// Results are the names of the operands that it computes as the call does; nil means all that
	// it writes.
	Results []string
}

// Op is the typed handle of an op with argument struct A. It is immutable; a program has one handle
// per op, made by NewOp.
type Op[A any] struct {
	description
	check  func(c *Check, a *A)
	access func(a *A, operand string, i int) Access
	frames sync.Pool // of *frame[A]
}

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
	// Collective reports whether the result depends on calls of other processes.
	Collective() bool
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
	o := &Op[A]{check: s.Check, access: s.Access, description: description{
		name: name, doc: s.Doc, formula: s.Formula, family: s.Family, forward: s.Forward, collective: s.Collective, tolerance: s.Tolerance, where: s.Where, lists: s.Lists, depends: s.Access != nil,
		args:   reflect.TypeFor[A](),
		run:    func(run any, x *Exec, args unsafe.Pointer) error { return run.(Func[A])(x, *(*A)(args)) },
		untype: func(f func(*Exec, any) error) any { return Func[A](func(x *Exec, a A) error { return f(x, a) }) },
	}}
	if s.Parts != nil {
		o.parts = func(args unsafe.Pointer) CallParts {
			a := *(*A)(args)
			p := s.Parts(&a)
			c := CallParts{N: p.N, Work: p.Work}
			if p.At != nil {
				c.At = func(i int) (Call, []string, error) {
					part, err := p.At(i)
					return o.At(&part.Args), part.Results, err
				}
			}
			return c
		}
	}
	o.serves = func(s *Support, args unsafe.Pointer) error { return Serves(s, o, *(*A)(args)) }
	if o.hooked() {
		o.hooks = func(args unsafe.Pointer) hooks { return &frame[A]{op: o, args: *(*A)(args)} }
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
func (o *Op[A]) Locate(a *A) (device.Place, error) {
	if o.hooked() {
		return o.locateHooked(*a)
	}
	return o.plan().validate(unsafe.Pointer(a), nil)
}

// hooked reports whether the schema has functions that are called with the arguments.
func (o *Op[A]) hooked() bool { return o.check != nil || o.access != nil }

// frame holds the arguments of a call for the functions of a schema, which get a pointer to them.
// It implements hooks.
type frame[A any] struct {
	op    *Op[A]
	args  A
	check Check
}

func (f *frame[A]) faultOf() error {
	if f.op.check == nil {
		return nil
	}
	f.check = Check{op: f.op.name}
	f.op.check(&f.check, &f.args)
	return f.check.err
}

func (f *frame[A]) accessOf(operand string, i int) Access { return f.op.access(&f.args, operand, i) }

// locateHooked is Locate for an op whose schema has functions. They get a copy of the arguments in
// a frame that is used again, because the compiler has to assume that they keep the pointer.
func (o *Op[A]) locateHooked(a A) (device.Place, error) {
	f, ok := o.frames.Get().(*frame[A])
	if !ok {
		f = &frame[A]{op: o}
	}
	f.args = a
	at, err := o.plan().validate(unsafe.Pointer(&f.args), f)
	f.args, f.check = *new(A), Check{}
	o.frames.Put(f)
	return at, err
}

// Lead returns the lead operand of a call, nil when there is none.
func (o *Op[A]) Lead(a *A) *tensor.Tensor { return o.plan().leader(unsafe.Pointer(a)) }

// Saved returns the record of the family's saved state, or nil for an op without a family.
func (o *Op[A]) Saved(a *A) *Saved { return o.plan().savedOf(unsafe.Pointer(a)) }

// Signature returns the signature of a call, as Call.Signature does.
func (o *Op[A]) Signature(a *A) uint64 { return o.plan().signature(unsafe.Pointer(a)) }

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
