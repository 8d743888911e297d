package loader

import (
	"errors"
	"fmt"
	"os"
)

// Variable is a variable of the environment that a library reads while it is loaded.
type Variable struct{ Name, Value string }

// OpenWith is Open with environment variables, which are set for this process and for the C library
// in it unless they are already set, even to "". If no library can be opened, it unsets them again.
// A library that is already in the process does not read them. Child processes inherit them.
func OpenWith(env []Variable, names ...string) (*Library, error) {
	var set []string
	unset := func() error {
		var faults []error
		for _, name := range set {
			faults = append(faults, os.Unsetenv(name))
		}
		return errors.Join(faults...)
	}
	for _, v := range env {
		if _, ok := os.LookupEnv(v.Name); ok {
			continue
		}
		if err := os.Setenv(v.Name, v.Value); err != nil {
			return nil, errors.Join(fmt.Errorf("loader: set %q to %q: %w", v.Name, v.Value, err), unset())
		}
		set = append(set, v.Name)
	}
	lib, err := Open(names...)
	if err != nil {
		return nil, errors.Join(err, unset())
	}
	return lib, nil
}
