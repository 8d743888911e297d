// Package export writes models in the formats of other programs: a folder that Hugging Face's
// transformers loads, and the GGUF files of llama.cpp.
//
// # Concepts
//
// A Model is an architecture, its weights, wherever they are, and a tokenizer. Weights are
// converted in small parts while they are written, so that a model may be larger than memory. A
// target appears whole or not at all, and never replaces something.
//
// # Errors
//
// Errors begin with the package. A model that the other program cannot compute is refused, with the
// reason.
package export
