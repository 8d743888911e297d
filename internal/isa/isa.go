package isa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/suggest"
)

// Env is the variable that names an instruction set.
const Env = "TE_FL_ISA"

const (
	auto    = "auto"    // the default
	generic = "generic" // no kernel in assembly
)

// Choice is a decision.
type Choice struct {
	Name string // generic, or the last of the features that kernels use
	From string // what decided, for users
	off  []cpufeat.Feature
}

// String returns the name and what decided.
func (c Choice) String() string { return c.Name + " (" + c.From + ")" }

// Apply makes kernels follow the choice until restore is called.
func (c Choice) Apply() (restore func()) {
	var undo []func()
	for _, f := range c.off {
		undo = append(undo, cpufeat.Disable(f))
	}
	return func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
}

// Names returns the values of Env that this machine serves.
func Names() []string {
	names := []string{auto, generic}
	for _, f := range cpufeat.Features() {
		if cpufeat.Has(f) {
			names = append(names, f.String())
		}
	}
	return names
}

// OfClass returns the name that leads to a class of cpufeat.Class.
func OfClass(class string) string {
	if at := strings.LastIndexByte(class, '+'); at >= 0 {
		return class[at+1:]
	}
	return generic
}

// Settings are what Choose decides by.
type Settings struct {
	Want  string         // a value of Env; "" means auto
	Fixed bool           // decide by the CPU alone, not by a measurement
	Cache string         // the file that keeps measurements; "" for none
	Rate  func() float64 // how fast products of pairs of bf16 are, relative to f32
}

// Choose decides. An error is one of Want.
func Choose(s Settings) (Choice, error) {
	want := strings.ToLower(strings.TrimSpace(s.Want))
	if want == "" || want == auto {
		return s.best(), nil
	}
	if !slices.Contains(Names(), want) {
		return Choice{}, fmt.Errorf("environment %s: given %q, want %s on this CPU%s", Env, s.Want, strings.Join(Names(), ", "), suggest.Hint(want, Names()))
	}
	return upTo(want, "environment "+Env), nil
}

// upTo is the choice of the features up to the named one.
func upTo(name, from string) Choice {
	c := Choice{Name: name, From: from}
	beyond := name == generic
	for _, f := range cpufeat.Features() {
		if beyond {
			c.off = append(c.off, f)
		}
		beyond = beyond || f.String() == name
	}
	return c
}

// best is the newest feature, or the one before products of bf16 where these are slower.
func (s Settings) best() Choice {
	newest := generic
	for _, f := range cpufeat.Features() {
		if cpufeat.Has(f) && f != cpufeat.BF16 {
			newest = f.String()
		}
	}
	if !cpufeat.Has(cpufeat.BF16) {
		return upTo(newest, "the newest that this CPU has")
	}
	if s.Fixed {
		if fastPairs() {
			newest = cpufeat.BF16.String()
		}
		return upTo(newest, "deterministic_mode: by the model of the CPU")
	}
	rate, from := s.rate()
	from = fmt.Sprintf("%s: products of bf16 are %.2f times as fast as those of f32", from, rate)
	if rate > 1 {
		newest = cpufeat.BF16.String()
	}
	return upTo(newest, from)
}

// fastPairs reports whether this CPU is known to gain from the instruction for products of bf16:
// AMD's do since Zen 4, the first that has it. Of Intel's some lose half of the speed.
func fastPairs() bool { return cpuid.CPU.VendorID == cpuid.AMD }

// rate returns how fast products of bf16 are, and where that comes from.
func (s Settings) rate() (rate float64, from string) {
	here := machine()
	if rate, ok := read(s.Cache, here); ok {
		return rate, "measured before, " + s.Cache
	}
	rate = s.Rate()
	if !sane(rate) {
		return 1, "not measurable"
	}
	if s.Cache == "" {
		return rate, "measured"
	}
	if err := write(s.Cache, here, rate); err != nil {
		return rate, fmt.Sprintf("measured, and not kept: %v", err)
	}
	return rate, "measured, kept in " + s.Cache
}
