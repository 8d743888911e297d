// Package embedding has the look-up of rows in a table and its gradient.
//
// Package ops says what holds for every op of the catalogue.
package embedding
