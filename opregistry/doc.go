// Package opregistry defines what every other package agrees on: what an op is, what an
// implementation of it (an impl) is, and which impls exist.
//
// # Concepts
//
// An Op is a typed handle: a name, an argument struct and a schema that validates arguments and
// says which operands are read, written or updated in place. A Call is an op with the arguments of
// a call, for code that serves all ops in the same way. An Impl is one function that computes an
// op, with its kind (flagos, vendor or reference), its vendor and its priority. A Source is a named
// set of impls that is registered as a whole. A Registry collects sources and publishes immutable
// Snapshots. Package opmanager decides which impl a call uses.
//
// Ops are destination-passing: the caller owns every operand, outputs included. An impl keeps no
// operand after it returns, and takes scratch memory and workers from the Exec that it receives.
//
// # The description of an op
//
// The argument struct of an op has one field per argument, and the field's tag describes it. What a
// call is validated against, the operands that it lists, the memory that they may share, the C
// header, the layout that plugins are compared with and the documentation come from the tags; what
// concerns the whole op stands in the Schema.
//
//	type RMSNormFwdArgs struct {
//		Input  *tensor.Tensor `op:"0 input read compute [.. cols>0]"`
//		Weight *tensor.Tensor `op:"1 weight read compute (cols)"`
//		Output *tensor.Tensor `op:"2 output write compute [.. cols>0] may=input"`
//		RSigma *tensor.Tensor `op:"3 rsigma write f32 (rows)"`
//		Eps    float32        `op:"4 eps >0"`
//		Saved  *Saved
//	}
//
// A tag begins with the index of the argument in primus_call.args and its name, the same in errors,
// in the C header and in the documentation. Indexes are dense from 0 and do not change once they
// are released. A new argument has the next one and may be left out: where it is nil, or 0, the op
// computes what it did before, so a library that was compiled earlier still serves these calls. An
// argument that has no form in C has the index -.
// The field of type *Saved is that of a family and has no tag. The other words are, in any order:
//
//	read, write, update       what the op does to a tensor; one that it writes shares no memory with
//	                          another operand
//	write|update:accumulate   write, or update when the argument accumulate is true, or not nil
//	depends                   Schema.Access says it, call by call
//	may=x,y                   the operand may also be the same view as x or y
//	f32, bf16, i32 …          the dtypes that it may have
//	compute                   f32, bf16, f16 or f64
//	index, fp8, any           i32 or i64; f8e4m3 or f8e5m2; any dtype
//	=x                        the dtype of operand x
//	[.. rows cols]            its axes. A name stands for one length in all operands of the call, and
//	                          .. for any number of leading axes, the same in all operands; rows is
//	                          the product of those. A length may be a number, 2*h, or b+1, and cols>0
//	                          must not be 0.
//	[* _ _]                   its axes, whose lengths are not compared: * stands for any number of
//	                          leading axes and _ for any length
//	(b*h)                     its number of elements, whatever the axes are
//	masked                    −∞ stands for elements that are left out
//	contiguous                its elements are in row-major order without gaps
//	?                         it may be nil
//	?:gelu                    it is nil unless the argument gelu is true, or not nil
//	was=x,y                   names that it had before: C libraries compiled with them are used
//	lead                      the lead operand of the call; the first operand if there is no such word
//	>0, >=1, finite, [0,1)    the values that a number may have
//	len=n                     of a list of tensors: the name n stands for their number
//
// Operands whose axes are described are checked first, because they set the lengths that others are
// compared with: the lead operand, then the others in the order of the fields.
//
// A field that is a struct has an index and a name, and the fields of that struct have tags of
// their own: their indexes are added to that of the field, and their names follow its name and a
// dot. An embedded struct has an index and no name. An access in the tag of a struct is that of its
// tensors without one. Slices of structs are arguments without a form in C. For ops that share a
// struct, Schema.Where changes the words of some arguments; Schema.Lists describes the lists of an
// argument of type [][]*tensor.Tensor, all of one length, whose tensors have the shapes of the
// first list or the elements that (1) says.
//
// What the notation cannot say is checked by Schema.Check. An op is compiled from its description
// when it is first used.
//
// # Concurrency
//
// Op handles and Snapshots are immutable. A Registry is safe for concurrent use; readers of its
// current Snapshot take no lock. Impl functions are called from many goroutines at once unless
// their documentation says otherwise.
//
// # Errors
//
// An impl returns ErrUnsupported when it declines a call before it has written anything. *ArgError
// is a caller's mistake and is found before any impl runs. *DuplicateError and *ImplError name the
// op and the impl that they are about.
package opregistry
