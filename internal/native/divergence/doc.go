// Package divergence finds why training differs between two policies: which op, in which layer, and
// which call.
//
// # Concepts
//
// A Search trains a few steps on a batch of random tokens under both policies. If their losses
// differ, it trains again with some ops under one policy and all others under the other, and halves
// the set of ops until no op can be left out (the delta debugging of Zeller and Hildebrandt). Ops
// of a family are one unit. Then it does the same with the layers in which these ops are called,
// and last it runs each of their calls on the impls of both policies, until it finds one with a
// different result.
//
// # Concurrency
//
// A Search belongs to one goroutine.
package divergence
