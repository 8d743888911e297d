// Command benchmarks measures primus beside other programs, in one run of both.
//
//	dispatch  a call of an op beside a direct call of its impl
//	kernels   kernels of impls/flagos beside OpenBLAS, a loop that moves as many bytes, and PyTorch
//	opencl    kernels of an OpenCL device beside CLBlast and flagos
//	train     training steps under several policies beside PyTorch
//	scale     several ranks beside C, gloo and DistributedDataParallel of PyTorch
//	generate  generation of text beside PyTorch and llama.cpp
//	tokenize  a tokenizer beside @huggingface/tokenizers
//	serve-model  a model that clients use beside llama.cpp's server
//	serve     training that clients watch beside training that nobody watches
//	expect    the time that a dry run expects beside that of the run
//	save      how long saves stop training beside a copy of what they save
//	soak      a long run, which must not grow
//
// Contenders take turns, so that a machine that becomes slower affects all of them, and ratios are
// computed within a round. Peers that the machine does not have are listed with the reason. Each
// command has its own flags: -h lists them.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/program"
)

// command runs with its arguments, and writes its result to out.
type command func(ctx context.Context, args []string, out, progress io.Writer) error

func commands() map[string]command {
	return map[string]command{
		"dispatch": dispatch, "kernels": kernels, "opencl": openCL, "train": train, "scale": scale, "generate": generate, "tokenize": tokenize, "serve": serve, "serve-model": serveModel, "soak": soak, "expect": expect, "save": save,
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == rankMode {
		if err := beRank(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "benchmarks: rank:", err)
			os.Exit(1)
		}
		return
	}
	program.Main("benchmarks", run)
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	all := commands()
	if len(args) == 0 || all[args[0]] == nil {
		return fmt.Errorf("given %q, want one of %s first", args, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return all[args[0]](ctx, args[1:], out, progress)
}

// newFlags returns the flags of a command.
func newFlags(name string, progress io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(progress)
	return flags
}

// primusFlag adds -primus.
func primusFlag(flags *flag.FlagSet, to *string) {
	flags.StringVar(to, "primus", "bin/primus", "the program to measure")
}

// pythonFlag adds -python.
func pythonFlag(flags *flag.FlagSet, to *string) {
	flags.StringVar(to, "python", "", "the Python with PyTorch; the default is the first of /usr/bin/python3 and python3 that has it")
}

// formatFlag adds -o, whose value parse checks.
func formatFlag(flags *flag.FlagSet, to *string) {
	flags.StringVar(to, "o", "table", "table or json")
}

// parse reads flags that nothing may follow.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return checkFormat(flags)
}

// checkFormat returns an error for a wrong -o.
func checkFormat(flags *flag.FlagSet) error {
	if o := flags.Lookup("o"); o != nil && !slices.Contains([]string{"table", "json"}, o.Value.String()) {
		return fmt.Errorf("-o: given %q, want table or json", o.Value)
	}
	return nil
}

// write writes a result in a format.
func write(out io.Writer, format string, result any, table func(io.Writer) error) error {
	if format != "json" {
		return table(out)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(result)
}

// figure returns the text of a figure, or a dash where there is none.
func figure(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
