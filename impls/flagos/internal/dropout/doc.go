// Package dropout holds the impls of dropout, forward and backward.
package dropout
