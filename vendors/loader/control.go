package loader

import (
	"fmt"
	"strings"
)

// Control is the part of a thread's floating-point environment that affects the results of
// arithmetic: rounding, subnormal numbers and traps. Flags that record what happened are not part
// of it.
type Control struct {
	// SIMD is the control register of scalar and vector arithmetic: MXCSR on amd64, FPCR on arm64.
	SIMD uint32
	// X87 is the control word of the x87 unit on amd64, which C uses for long double.
	X87 uint32
}

// Change is what a C function did to the Control of its thread. The loader has undone it.
type Change struct{ From, To Control }

// IsZero reports whether nothing was changed.
func (c Change) IsZero() bool { return c.From == c.To }

// String describes what was switched, such as "subnormal results flushed to zero".
func (c Change) String() string {
	var parts []string
	for _, f := range controlFields {
		from, to := f.of(c.From), f.of(c.To)
		if from != to {
			parts = append(parts, f.describe(to))
		}
	}
	if len(parts) == 0 {
		parts = []string{"bits without a name"}
	}
	return fmt.Sprintf("%s (%s)", strings.Join(parts, ", "), c.registers())
}

// registers lists the registers that changed.
func (c Change) registers() string {
	var parts []string
	if c.From.SIMD != c.To.SIMD {
		parts = append(parts, fmt.Sprintf("%s %#x to %#x", simdRegister, c.From.SIMD, c.To.SIMD))
	}
	if c.From.X87 != c.To.X87 {
		parts = append(parts, fmt.Sprintf("x87 control word %#x to %#x", c.From.X87, c.To.X87))
	}
	return strings.Join(parts, ", ")
}

// controlField is a group of bits of a Control.
type controlField struct {
	of       func(Control) uint32
	describe func(value uint32) string
}

// simdBits returns a field of the SIMD register.
func simdBits(shift, mask uint32, describe func(uint32) string) controlField {
	return controlField{func(c Control) uint32 { return c.SIMD >> shift & mask }, describe}
}

// x87Bits returns a field of the x87 control word.
func x87Bits(shift, mask uint32, describe func(uint32) string) controlField {
	return controlField{func(c Control) uint32 { return c.X87 >> shift & mask }, describe}
}

// oneOf describes a field that is an enumeration.
func oneOf(format string, names ...string) func(uint32) string {
	return func(value uint32) string { return fmt.Sprintf(format, names[min(int(value), len(names)-1)]) }
}

// onOff describes a field of one bit.
func onOff(off, on string) func(uint32) string { return oneOf("%s", off, on) }
