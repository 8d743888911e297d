// Package inference generates text with a model and scores text by it.
//
// # Concepts
//
// An Engine owns a model.Decoder, which keeps the keys and values of several sequences at once. A
// request gets a free slot, or waits for one: next is the client for which the fewest tokens were
// computed, and one that has had many makes room for it and computes its tokens anew later. Each
// step computes the next token of every sequence that generates, and a part of the prompts of new
// ones, so that sequences begin and end independently of each other. What a request gets does not
// depend on the others, except for rounding: products of more rows may add up in another order,
// unless Settings ask for the same bits.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It has one goroutine, which Close ends.
//
// # Errors
//
// A request that cannot be served is refused before it gets a slot, with a *RequestError. When a
// step fails, the requests of that step end with its error, and the engine goes on.
package inference
