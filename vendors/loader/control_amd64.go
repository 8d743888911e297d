//go:build (linux || darwin) && !android && !nopurego

package loader

const simdRegister = "MXCSR"

// These bits of MXCSR and of the x87 control word belong to Control. The others record exceptions
// or are reserved.
const (
	simdMask = 0xffc0
	x87Mask  = 0x0f3f
)

var controlFields = []controlField{
	simdBits(13, 3, oneOf("rounding %s", "to nearest", "down", "up", "towards zero")),
	simdBits(15, 1, onOff("subnormal results kept", "subnormal results flushed to zero")),
	simdBits(6, 1, onOff("subnormal operands kept", "subnormal operands taken as zero")),
	simdBits(7, 0x3f, func(masks uint32) string {
		if masks == 0x3f {
			return "floating-point traps off"
		}
		return "floating-point traps on"
	}),
	x87Bits(10, 3, oneOf("x87 rounding %s", "to nearest", "down", "up", "towards zero")),
	x87Bits(8, 3, oneOf("x87 precision of %s", "24 bits", "reserved bits", "53 bits", "64 bits")),
	x87Bits(0, 0x3f, func(masks uint32) string {
		if masks == 0x3f {
			return "x87 traps off"
		}
		return "x87 traps on"
	}),
}
