package opregistry

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Call is an op with the arguments of a call, for code that serves all ops in the same way and is
// compiled once. It points to the arguments and must not outlive them.
type Call struct {
	op   *description
	args unsafe.Pointer // to the argument struct
}

// At returns the call of the op with these arguments.
func (o *Op[A]) At(a *A) Call { return Call{&o.description, unsafe.Pointer(a)} }

// CallOf returns the call of an op with arguments that are a value of its argument struct, of which
// it makes a copy. It panics when args is something else.
func CallOf(op Handle, args any) Call {
	d := op.describe()
	v := reflect.New(d.args)
	v.Elem().Set(reflect.ValueOf(args))
	return Call{d, v.UnsafePointer()}
}

// ArgsOf returns the arguments of a call. It panics when A is not their type.
func ArgsOf[A any](c Call) *A {
	if t := reflect.TypeFor[A](); t != c.op.args {
		panic(fmt.Sprintf("BUG: opregistry: op %q: got arguments of type %v, want %v", c.op.name, t, c.op.args))
	}
	return (*A)(c.args)
}

// Clone returns the call with a copy of the argument struct, and that copy. The tensors are shared.
func (c Call) Clone() (Call, reflect.Value) {
	v := reflect.New(c.op.args)
	v.Elem().Set(reflect.NewAt(c.op.args, c.args).Elem())
	return Call{c.op, v.UnsafePointer()}, v.Elem()
}

// Validate checks the arguments. It returns an *ArgError.
func (c Call) Validate() error {
	_, err := c.op.plan().validate(c.args, c.op.hooksOf(c.args))
	return err
}

// Operands lists the tensors of the call.
func (c Call) Operands() []Operand { return c.op.plan().list(c.args, c.op.hooksOf(c.args)) }

// Updated lists the operands whose old content would be lost if an impl failed half-way: those that
// are updated, and those written that share memory with one that is read.
func (c Call) Updated() []Operand { return updated(c.Operands()) }

// Lead returns the lead operand, nil when there is none.
func (c Call) Lead() *tensor.Tensor { return c.op.plan().leader(c.args) }

// Saved returns the record of the family's saved state, or nil for an op without a family.
func (c Call) Saved() *Saved { return c.op.plan().savedOf(c.args) }

// CallParts are Parts of a call of any op.
type CallParts struct {
	N    int
	Work float64
	At   func(i int) (part Call, results []string, err error) // nil if the call is the only part
}

// Parts returns the parts of the call that can be computed apart from each other.
func (c Call) Parts() CallParts {
	if c.op.parts != nil {
		return c.op.parts(c.args)
	}
	work := 0
	for _, o := range c.Operands() {
		if o.Tensor != nil {
			work += o.Tensor.NumElements()
		}
	}
	return CallParts{N: 1, Work: float64(work)}
}

// Run runs the function of an impl of the op, Impl.Run.
func (c Call) Run(run any, x *Exec) error { return c.op.run(run, x, c.args) }

// Place returns where all operands lie, device.PlaceMixed if they do not lie in one place.
func (c Call) Place() device.Place {
	at := nowhere
	for _, o := range c.Operands() {
		if o.Tensor != nil {
			at = at.with(o.Tensor)
		}
	}
	return at.place()
}

// Served returns nil if an impl with this Support serves the call, else an error that wraps
// ErrUnsupported and says why not.
func (c Call) Served(s *Support) error { return c.op.serves(s, c.args) }
