// Package loss has the cross entropy of logits, that of an output layer, and their gradients.
//
// Package ops says what holds for every op of the catalogue.
package loss
