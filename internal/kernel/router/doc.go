// Package router holds the inner loops of the router of a mixture of experts: the largest scores of
// a token, the choice of experts and the gradients of their weights.
//
// The functions may be called from any goroutine.
package router
