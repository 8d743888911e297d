// Package projection computes, before a run, what the training of a Megatron experiment needs: the
// memory of each pipeline stage, and the arithmetic, the communication and the time of a step.
//
// # Concepts
//
// [Read] makes a [Plan] from the parameters of an experiment: the [Model], how it is cut over
// devices ([Parallel]) and what is kept in which precision ([Precision]). [Plan.Memory] and
// [Plan.Performance] are computed from it, and every figure has the formula that it came from.
// [Plan.Alternatives] computes the memory of other settings of the same model, and a [Search] finds
// the fastest settings that fit a cluster.
//
// Nothing is run or measured. What the formulas leave out is listed with the result.
//
// # Errors
//
// Values that Megatron would refuse, and models that the formulas do not describe, are errors that
// name the parameter and where it was written.
package projection
