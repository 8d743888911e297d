// Package activation has the activations of a feed-forward layer, with and without a gate, and
// their gradients.
//
// Package ops says what holds for every op of the catalogue.
package activation
