// Package delta holds the inner loop of linear attention by the delta rule: a position updates a
// state, which is a matrix, and reads it.
//
// The state is cut into blocks of Columns columns, each of which stays in the first-level cache
// while it goes through many positions. The functions may be called from any goroutine.
package delta
