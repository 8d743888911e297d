// Package loss has the cross entropy of logits and its gradient.
//
// Package ops says what holds for every op of the catalogue.
package loss
