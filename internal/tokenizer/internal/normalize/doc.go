// Package normalize has the normalizers of tokenizers: what they do to text before it is cut into
// words.
//
// A Normalizer appends the normal form of a text to a slice, which must not share memory with the
// text. Texts are valid UTF-8; Valid makes them so.
package normalize
