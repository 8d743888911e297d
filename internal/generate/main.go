// Command generate writes the files of this tree that are made from the code of others.
//
//	header FILE LAYOUTS  the C header with the order of each op's arguments; arguments that are new are
//	                     added to the list of those that libraries are compiled with
//	bindings FILE        the list of the ops that libprimus binds
//	python FOLDER        the catalogue of ops for Python
//	dashboards FOLDER    the dashboards of Grafana
package main

import (
	"fmt"
	"os"

	"github.com/primus-fl/primus/internal/dashboards"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	writers := map[string]func(string) error{"bindings": bindings, "python": python, "dashboards": dashboards.Write}
	switch {
	case len(args) == 3 && args[0] == "header":
		return header(args[1], args[2])
	case len(args) == 2 && writers[args[0]] != nil:
		return writers[args[0]](args[1])
	}
	return fmt.Errorf("given %q, want header FILE LAYOUTS, bindings FILE, python FOLDER or dashboards FOLDER", args)
}
