// Package batch has the batches of sequences that a language model trains on, and the masks that
// separate the documents in a sequence.
//
// # Concepts
//
// A Batch is rows of tokens, with a weight for the loss of each token, the document to which each
// token belongs and its position. Whatever is nil has its plain value: every loss counts, a row is
// one document, and positions are those in the row. Masks derive these from the places of a token
// that ends documents, as Megatron does with reset_attention_mask, reset_position_ids and
// eod_mask_loss.
//
// # Concurrency
//
// A Batch belongs to one goroutine.
package batch
