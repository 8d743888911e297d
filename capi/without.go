//go:build !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "libprimus needs cgo: make lib builds it with a C compiler")
	os.Exit(2)
}
