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
// A Pass is made of blocks: norm, attention, mlp, dropout and embedding are chosen
// when it is built. A block has its weights, its activations and its ops, bound to
// the manager's views for its layer and for forward and backward.
//
// Query, key and value projections share one weight (rows: query heads, key heads, value heads), as
// do gate and up projections (rows: gate, up) and the experts of a layer; Tensors gives the parts
// under the names of the Hugging Face class that the model is one of.
//
// # Concurrency
//
// A Model and its Passes may be used by one goroutine at a time.
//
// # Errors
//
// Errors begin with the part of the model ("layer 3 attention"). *NonFiniteError names the first op
// whose result is NaN or infinite.
package model
