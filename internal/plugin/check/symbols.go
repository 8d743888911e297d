package check

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
)

// witnesses are the functions of the C library by which code finds out where and when it runs.
var witnesses = map[string]string{
	"clock": "the clock", "clock_gettime": "the clock", "gettimeofday": "the clock", "time": "the clock", "timespec_get": "the clock", "times": "the clock",
	"environ": "the environment", "getenv": "the environment", "secure_getenv": "the environment",
	"program_invocation_name": "the command line", "program_invocation_short_name": "the command line",
}

// The standard library of Rust, whose sources every library that contains it names in its messages,
// asks the environment how to print a panic.
const (
	rustSources = "/library/std/src/"
	rustAsks    = "getenv"
)

// witnessed says what a library can see beside its operands, "" for nothing that is known.
// Libraries other than those for ELF are not read.
func witnessed(file string) string {
	opened, err := durable.OpenRegular(file)
	if err != nil {
		return ""
	}
	defer opened.Close()
	lib, err := elf.NewFile(opened)
	if err != nil {
		return ""
	}
	imported, err := lib.ImportedSymbols()
	if err != nil {
		return ""
	}
	seen, functions := map[string]bool{}, map[string]bool{}
	for _, s := range imported {
		if what := witnesses[s.Name]; what != "" && (s.Name != rustAsks || !contains(lib, rustSources)) {
			seen[what], functions[s.Name] = true, true
		}
	}
	if len(seen) == 0 {
		return ""
	}
	return fmt.Sprintf("it looks at %s (%s), so it could tell a check from training",
		strings.Join(slices.Sorted(maps.Keys(seen)), " and "), strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
}

// contains reports whether the constants of a library contain a text.
func contains(lib *elf.File, text string) bool {
	section := lib.Section(".rodata")
	if section == nil {
		return false
	}
	data, err := section.Data()
	return err == nil && bytes.Contains(data, []byte(text))
}

// oursBy is a function that only the library with the ops of this program has.
const oursBy = "primus_run"

// ours reports whether a file is a library with the ops of this program.
func ours(file string) bool {
	opened, err := durable.OpenRegular(file)
	if err != nil {
		return false
	}
	defer opened.Close()
	lib, err := elf.NewFile(opened)
	if err != nil {
		return false
	}
	symbols, err := lib.DynamicSymbols()
	return err == nil && slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == oursBy && s.Section != elf.SHN_UNDEF })
}
