// Package optim is the optimizer of the native trainer: AdamW with clipping by the global norm, and
// the learning-rate schedule. All arithmetic on weights is done by the ops multi_tensor_l2norm,
// multi_tensor_scale and multi_tensor_adam.
//
// # Concurrency
//
// An Adam belongs to one goroutine; a Schedule is a value.
//
// # Errors
//
// Validate returns every fault of a configuration, each beginning with the key it is about.
package optim
