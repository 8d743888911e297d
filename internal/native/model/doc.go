// Package model is the decoder that the native backend trains, with an explicit forward and
// backward pass. Its configuration decides whether it is a Llama, a Mistral, a Qwen, a GPT-2, a
// Mixtral or a mixture of their parts: the norm, norms of heads, rotary or learned positions,
// grouped-query attention, windows, SwiGLU, GELU or a mixture of experts, biases, dropout, tied or
// untied embeddings.
//
// # Concepts
//
// Every computation is an op of the catalogue, called through an op manager; this package owns the
// memory and determines the order. A Model holds the weights and their gradients. A Pass holds the
// activations for one batch size and sequence length and runs forward and backward over them. A
// step allocates nothing except the views of the rows that go to each expert.
//
// Its configuration is of package architecture. A Pass or a Decoder is made of blocks, which are
// chosen when it is built. A rank may have a part of the model: a Slice says which part of a weight
// it has, and Routes bring rows of activations to the rank that has the weights for them.
//
// # Concurrency
//
// A Model and its Passes may be used by one goroutine at a time.
//
// # Errors
//
// Errors begin with the part of the model ("layer 3 attention"). *NonFiniteError names the first op
// whose result is NaN or infinite. A failed collective is a *world.Error, after which the run has
// to end on all ranks.
package model
