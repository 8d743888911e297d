// Package chat renders conversations with the chat template of a tokenizer.
//
// # Concepts
//
// A chat template is a text in the language Jinja that comes with a tokenizer and turns messages
// into the text that the model was trained on. Parse reads one, Template.Render applies it as
// transformers does: blocks are trimmed (trim_blocks, lstrip_blocks), the functions
// raise_exception and strftime_now exist, tojson does not escape HTML, and {% generation %} marks
// what the model is to write.
//
// The interpreter covers what templates use: for (with if and else), if, set (also as a block and
// of attributes of a namespace), macro, filter, break, continue, raw, generation; expressions with
// conditions, slices, calls, filters and tests; methods of strings, lists and mappings. Anything
// else, such as include or an unknown filter, is an error that names it with its line and column.
//
// Template.Conversation renders a conversation and says which parts of the text are answers.
//
// # Concurrency
//
// A Template can be used by several goroutines.
//
// # Errors
//
// Faults of a template are of type *Error and have a position. A template is data of others: the
// steps, the memory and the depth that rendering may take are limited.
package chat
