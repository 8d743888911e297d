// Package model is the Llama-style decoder that the native backend trains:
// RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied or untied
// embeddings, with an explicit forward and backward pass.
//
// # Concepts
//
// Every computation is an op of the catalogue, called through an op manager; this
// package only owns memory and order. A Model holds the weights and their
// gradients. A Pass holds the activations for one batch size and sequence length
// and runs forward and backward over them. Nothing is allocated in a step.
//
// Query, key and value projections share one weight (rows: query heads, key
// heads, value heads), as do gate and up projections (rows: gate, up); Tensors
// gives the parts under the names of Hugging Face's Llama.
//
// # Concurrency
//
// A Model and its Passes belong to one goroutine at a time.
//
// # Errors
//
// Errors name the place in the model ("layer 3 attention") in front of the op's
// own error. *NonFiniteError names the first op whose result is NaN or infinite.
package model
