// What the loops for AVX-512 have in common. A file that includes this one has included textflag.h.

#define LANES 16
#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4

// words selects the lower halves of the doublewords of two vectors in the order of VPACKSSDW.
DATA words<>+0(SB)/8, $0x0006000400020000
DATA words<>+8(SB)/8, $0x0026002400220020
DATA words<>+16(SB)/8, $0x000e000c000a0008
DATA words<>+24(SB)/8, $0x002e002c002a0028
DATA words<>+32(SB)/8, $0x0016001400120010
DATA words<>+40(SB)/8, $0x0036003400320030
DATA words<>+48(SB)/8, $0x001e001c001a0018
DATA words<>+56(SB)/8, $0x003e003c003a0038
GLOBL words<>(SB), RODATA|NOPTR, $64

// order brings what was packed from four vectors into their order.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000c00000008
DATA order<>+16(SB)/8, $0x0000000500000001
DATA order<>+24(SB)/8, $0x0000000d00000009
DATA order<>+32(SB)/8, $0x0000000600000002
DATA order<>+40(SB)/8, $0x0000000e0000000a
DATA order<>+48(SB)/8, $0x0000000700000003
DATA order<>+56(SB)/8, $0x0000000f0000000b
GLOBL order<>(SB), RODATA|NOPTR, $64

#define SIGNS \
	MOVL         $0x7fffffff, AX \
	VPBROADCASTD AX, Z16

// Of a number and a NaN, VMAXPS returns its last source, the first one here.
#define AMAXOF(mem, to, t) \
	VPANDD mem, Z16, t \
	VMAXPS to, t, to

#define GREATEST \
	VEXTRACTF64X4 $1, Z0, Y1      \
	VMAXPS        Y1, Y0, Y0      \
	VEXTRACTF128  $1, Y0, X1      \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0x4e, X0, X1   \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0xb1, X0, X1   \
	VMAXPS        X1, X0, X0

#define FORMAT \
	SIGNS                        \
	MOVL         $0x7f800000, AX \
	VPBROADCASTD AX, Z17         \
	MOVL         $0x80, AX       \
	VPBROADCASTD AX, Z18         \
	VMOVQ        (R8), X19       \
	VPBROADCASTD 44(R8), Z20     \
	VBROADCASTSS 12(R8), Z21     \
	VBROADCASTSS 16(R8), Z22     \
	VPBROADCASTD 24(R8), Z24     \
	VMOVUPS      56(R8), Z25     \
	VMOVUPS      120(R8), Z26    \
	VMOVDQU32    words<>(SB), Z27 \
	VMOVDQU32    order<>(SB), Z28 \
	MOVL         $0x80808080, AX \
	VPBROADCASTD AX, Z29

// With e the power of two at or below the magnitude, which is at least the smallest normal number,
// the sum with a power of two whose unit is that of fp8 numbers from e on has the mantissa of the
// result in its low bits, and the bits of e have the exponent.
#define ENCODE(to) \
	VPANDD     Z16, Z1, Z2        \
	VCMPPS     $3, Z1, Z1, K2     \
	VMINPS     Z21, Z2, Z2        \
	VMAXPS     Z22, Z2, Z3        \
	VPANDD     Z17, Z3, Z3        \
	VPADDD     Z20, Z3, Z4        \
	VADDPS     Z4, Z2, Z2         \
	VPSRLD     X19, Z3, Z3        \
	VPADDD     Z3, Z2, Z2         \
	VMOVDQA32  Z24, K2, Z2        \
	VPSRLD     $24, Z1, Z1        \
	VPTERNLOGD $0xf8, Z18, Z1, Z2 \
	VPMOVDB    Z2, to

// NEAREST adds the number from the sums to a magnitude a, which is at most the largest number, so
// that its fp8 is in the low byte.
#define NEAREST(a, t) \
	VMAXPS    Z22, a, t     \
	VPSRLD    $23, t, t     \
	VPERMI2PS Z26, Z25, t   \
	VADDPS    t, a, a

// STOREFOUR stores fp8 of the magnitudes in Z5 to Z8 with the signs of Z1 to Z4.
#define STOREFOUR \
	NEAREST(Z5, Z9)               \
	NEAREST(Z6, Z10)              \
	NEAREST(Z7, Z11)              \
	NEAREST(Z8, Z12)              \
	VPACKSSDW  Z2, Z1, Z1         \
	VPACKSSDW  Z4, Z3, Z3         \
	VPACKSSWB  Z3, Z1, Z1         \
	VPERMT2W   Z6, Z27, Z5        \
	VPERMT2W   Z8, Z27, Z7        \
	VPACKUSWB  Z7, Z5, Z5         \
	VPTERNLOGD $0xf8, Z29, Z1, Z5 \
	VPERMD     Z5, Z28, Z5        \
	VMOVDQU32  Z5, (DI)

#define ENCODEFOUR(nan) \
	VCMPPS   $3, Z1, Z2, K1  \
	VCMPPS   $3, Z3, Z4, K2  \
	KORTESTW K1, K2          \
	JNE      nan             \
	VPANDD   Z16, Z1, Z5     \
	VPANDD   Z16, Z2, Z6     \
	VPANDD   Z16, Z3, Z7     \
	VPANDD   Z16, Z4, Z8     \
	VMINPS   Z21, Z5, Z5     \
	VMINPS   Z21, Z6, Z6     \
	VMINPS   Z21, Z7, Z7     \
	VMINPS   Z21, Z8, Z8     \
	STOREFOUR
