// Package recording keeps calls of ops in files and runs them again, so that a wrong or a slow
// result can be looked at away from the run that it belongs to: on another impl, on another
// machine, by the author of an impl.
//
// # Concepts
//
// A Call is one call: the op, all scalars, the tensors as they were before the call with their
// strides, and the results. Its file is a safetensors file, which other programs read, too: tensor
// "x.before" is operand x before the call, "x.after" what the call left there; the metadata has the
// rest as JSON under the key "primus_call". Operands that are the same view are one tensor.
//
// A Recorder is an opmanager.Tap that keeps the calls that its Settings choose. It copies operands
// during the call and writes files on a goroutine of its own. Calls of an op with an argument that
// has no form in C cannot be kept; the Recorder counts and names them.
//
// Replay runs a Call on impls and compares their results with the recorded ones and with those of
// the reference.
//
// # Concurrency
//
// A Recorder may be used by several goroutines. A Call is immutable.
//
// # Errors
//
// A file that does not hold a call gives a *FormatError with the file, what was found and what is
// wanted. An op that this program does not have, or has with other arguments, is an error of Open.
package recording
