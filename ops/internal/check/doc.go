// Package check has what the validation of ops shares: the first fault of a call, and the
// requirements on operands that most ops have. A valid call allocates nothing.
package check
