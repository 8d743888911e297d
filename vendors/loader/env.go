package loader

import (
	"fmt"
	"os"
)

// SetDefaultEnv sets an environment variable, for this process and for the C
// library in it, unless it is set already, to whatever. It reports whether it
// set it. A library that reads the variable while it is loaded must be opened
// afterwards; one that is in the process already does not look again. Child
// processes inherit the variable.
func SetDefaultEnv(name, value string) (bool, error) {
	if _, ok := os.LookupEnv(name); ok {
		return false, nil
	}
	if err := os.Setenv(name, value); err != nil {
		return false, fmt.Errorf("loader: set %q to %q: %w", name, value, err)
	}
	return true, nil
}
