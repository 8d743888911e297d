// Package oppolicy ranks the impls of an op.
//
// A Policy says which kinds, vendors and single impls may serve an op, in which order, and what
// happens when one of them fails. It comes from the environment variables of TransformerEngine-FL
// (FromEnvironment), from text given to its Set methods, or from a program that sets its fields;
// package policyfile reads one from YAML. A Policy remembers where each value came from, and with
// that which values it gives when it is laid over another one (Over).
//
// Select applies a policy to the impls of one op. It knows nothing of running programs: a Manager
// of package opmanager builds its dispatch table with it.
//
// A Policy is a value. Copy it and change the copy to derive another one; do not change a Policy
// that a Manager uses. Reading one is safe for concurrent use.
//
// A text that cannot be read is an *Error with its source, its position and what to write instead.
package oppolicy
