// Package moe holds the impls of a mixture of experts: the router with its auxiliary loss, and what
// brings tokens to the rows of their experts and back.
package moe
