// Package architecture is the configuration of a decoder: its parameters under Megatron's names,
// what follows from them in sizes and operations, and the class of Hugging Face that can load such
// a model, with the names of its weights.
package architecture
