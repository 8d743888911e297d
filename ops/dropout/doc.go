// Package dropout has dropout and its gradient.
//
// Package ops says what holds for every op of the catalogue.
package dropout
