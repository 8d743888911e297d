// Package unsupported lists the parameters of Megatron that affect what a run computes and that the
// native trainer does not have.
//
// Each has values that ask for what the native trainer does anyway, such as false for qk_l2_norm or
// 1 for pipeline_model_parallel_size. They pass, so that a complete configuration of Megatron can
// be used. Check returns an error for every other value. Parameters of Megatron that are not listed
// here affect the speed of a run, its reports, or something that only matters with a parameter that
// is refused.
//
// The names are those of the arguments of Megatron-LM; what each does was read from its help texts.
package unsupported
