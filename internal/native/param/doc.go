// Package param lists the weights of a decoder in the order of its computation, with their names,
// shapes and initial values, and the part of each that a rank has.
//
// Query, key and value projections share one weight (rows: query heads, key heads, value heads), as
// do gate and up projections (rows: gate, up) and the experts of a layer; ByName gives the parts
// under the names of checkpoints.
package param
