// Package moe holds the impls that bring tokens to the rows of their experts and back.
package moe
