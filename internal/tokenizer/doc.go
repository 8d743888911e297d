// Package tokenizer turns text into the token ids of language models and back.
//
// # Concepts
//
// A Tokenizer maps text to ids. Byte is the simplest: one id per byte. Load reads a File: the
// tokenizer.json of a Hugging Face folder, the tokenizer.model of SentencePiece, or a file of
// tiktoken. A File also has the special ids of its model, the text of its chat template and the raw
// files, which belong into every folder that holds the model's weights.
//
// # Concurrency
//
// Tokenizers are immutable and safe for concurrent use.
//
// # Errors
//
// Errors of Load name the file, the part of it that is wrong or not supported, and what is
// supported.
package tokenizer
