// Package dropout holds the impls of dropout and of its gradient.
package dropout
