// Package program is what programs that measure and attack have in common: their main function, and
// the programs that they start.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// Main runs a program, whose context ends with an interrupt. An error goes to the standard error
// output after the name of the program, and the exit code is 1. flag.ErrHelp is no error.
func Main(name string, run func(ctx context.Context, args []string, out, progress io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+": error:", err)
		os.Exit(1)
	}
}
