// Package norm has the ops that normalise rows, RMSNorm and LayerNorm with their gradients, and the
// residual addition beside them.
//
// Package ops says what holds for every op of the catalogue.
package norm
