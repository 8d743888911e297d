//go:build (linux || darwin) && !android && !nopurego

package loader

const simdRegister = "FPCR"

// These bits of FPCR belong to Control. FPSR, which records exceptions, is another register.
const (
	simdMask = 0x07ff9f07
	x87Mask  = 0
)

var controlFields = []controlField{
	simdBits(22, 3, oneOf("rounding %s", "to nearest", "up", "down", "towards zero")),
	simdBits(24, 1, onOff("subnormal numbers kept", "subnormal numbers flushed to zero")),
	simdBits(19, 1, onOff("subnormal f16 numbers kept", "subnormal f16 numbers flushed to zero")),
	simdBits(25, 1, onOff("payloads of NaN kept", "payloads of NaN dropped")),
	simdBits(8, 0x9f, func(traps uint32) string {
		if traps == 0 {
			return "floating-point traps off"
		}
		return "floating-point traps on"
	}),
}
