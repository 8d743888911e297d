// Package embedding holds the impls of the rows of a table and of their gradient.
package embedding
