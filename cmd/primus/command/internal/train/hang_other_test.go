//go:build !unix

package train_test

// roles plays a role of the tests of this package.
func roles(role string, args []string) int { return mounted(role, args) }
