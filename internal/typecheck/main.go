// Command typecheck type-checks the module and its tests for several systems:
//
//	go run ./internal/typecheck linux/arm64 darwin/arm64 windows/amd64
//
// It reads sources only. To learn as much, go vet compiles the whole module for each system, with
// all that it imports.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(".", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

// run type-checks the module in a folder and prints each error once, with the systems that have it.
func run(dir string, systems []string, out io.Writer) error {
	if len(systems) == 0 {
		return fmt.Errorf("given no systems, want some of GOOS/GOARCH, as in darwin/arm64")
	}
	problems, err := check(dir, systems)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintf(out, "%s %v\n", p.text, p.systems)
	}
	if len(problems) > 0 {
		return fmt.Errorf("given %d errors, want none", len(problems))
	}
	return nil
}
