// Package loss holds the impls of the cross entropy and of its gradient.
package loss
