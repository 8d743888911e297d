// Package embedding holds the impls that look up rows of a table and add up their gradients.
package embedding
