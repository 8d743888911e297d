// Package optim has the steps of optimizers and the norms and scales that they need, each for lists
// of tensors.
//
// Package ops says what holds for every op of the catalogue.
package optim
