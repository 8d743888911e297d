package loader

import (
	"fmt"
	"os"
)

// SetDefaultEnv sets an environment variable, for this process and for the C library in it, unless
// it is already set, even to "". It reports whether it set the variable. A library that reads the
// variable while it is loaded must be opened afterwards; one that is already in the process does
// not read it again. Child processes inherit the variable.
func SetDefaultEnv(name, value string) (bool, error) {
	if _, ok := os.LookupEnv(name); ok {
		return false, nil
	}
	if err := os.Setenv(name, value); err != nil {
		return false, fmt.Errorf("loader: set %q to %q: %w", name, value, err)
	}
	return true, nil
}
