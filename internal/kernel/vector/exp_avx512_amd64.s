//go:build !noasm

#include "avx512_amd64.h"

// The constants of exp_generic.go as bit patterns.
DATA expTable<>+0(SB)/4, $0xc2aeac4f  // expLow
DATA expTable<>+4(SB)/4, $0x42b20000  // expHigh
DATA expTable<>+8(SB)/4, $0x3fb8aa3b  // log2e
DATA expTable<>+12(SB)/4, $0x3f310000 // ln2High
DATA expTable<>+16(SB)/4, $0x3ae42ff0 // ln2Low
DATA expTable<>+20(SB)/4, $0x3efffffe // expC2
DATA expTable<>+24(SB)/4, $0x3e2aaa48 // expC3
DATA expTable<>+28(SB)/4, $0x3d2aac7a // expC4
DATA expTable<>+32(SB)/4, $0x3c091d38 // expC5
DATA expTable<>+36(SB)/4, $0x3ab511a9 // expC6
DATA expTable<>+40(SB)/4, $0x3f800000 // 1
DATA expTable<>+44(SB)/4, $0x4b400000 // roundMagic
DATA expTable<>+48(SB)/4, $0x7f800000 // +Inf
DATA expTable<>+52(SB)/4, $0x7f7fffff // the largest finite number
GLOBL expTable<>(SB), RODATA|NOPTR, $56

#define C0 Z31
#define C1 Z18
#define C2 Z15
#define SUM0 Z16
#define SUM1 Z17
#define OK K2

#define EXPCONSTANTS \
	LEAQ         expTable<>(SB), R8 \
	VBROADCASTSS 0(R8), Z20  \
	VBROADCASTSS 4(R8), Z21  \
	VBROADCASTSS 8(R8), Z22  \
	VBROADCASTSS 12(R8), Z23 \
	VBROADCASTSS 16(R8), Z24 \
	VBROADCASTSS 20(R8), Z25 \
	VBROADCASTSS 24(R8), Z26 \
	VBROADCASTSS 28(R8), Z27 \
	VBROADCASTSS 32(R8), Z28 \
	VBROADCASTSS 36(R8), Z29 \
	VBROADCASTSS 40(R8), Z30 \
	VBROADCASTSS 44(R8), Z19

// The comparison of EXP is "not less than", so NaN passes; the minimum returns its last source for
// NaN.
#define EXP(x, n, p, s, ok) \
	VCMPPS       $0x15, Z20, x, ok \
	VMINPS       x, Z21, x         \
	VMOVAPS      Z19, n            \
	VFMADD231PS  Z22, x, n         \
	VSUBPS       Z19, n, n         \
	VFNMADD231PS Z23, n, x         \
	VFNMADD231PS Z24, n, x         \
	VMOVAPS      Z29, p            \
	VFMADD213PS  Z28, x, p         \
	VFMADD213PS  Z27, x, p         \
	VFMADD213PS  Z26, x, p         \
	VFMADD213PS  Z25, x, p         \
	VMULPS       x, x, s           \
	VFMADD213PS  x, s, p           \
	VADDPS       Z30, p, p         \
	VSCALEFPS.Z  n, p, ok, x

#define ADDTAIL(v, sum) VADDPS v, sum, K1, sum

// LOGISTIC has +Inf in C1.
#define LOGISTICCONSTANTS \
	EXPCONSTANTS           \
	VBROADCASTSS 48(R8), C1

// RECIPROCAL replaces x by d⁻¹ for d = 1 + x, and sets ok where d is finite. The estimate is refined
// once, which does not work for an infinite d; NaN passes.
#define RECIPROCAL(x, n, p, ok) \
	VADDPS       Z30, x, x    \
	VCMPPS       $4, C1, x, ok \
	VRCP14PS     x, n         \
	VMOVAPS      Z30, p       \
	VFNMADD231PS n, x, p      \
	VFMADD213PS  n, n, p      \
	VMOVAPS.Z    p, ok, x

#define LOGISTIC(x, n, p, s, ok) \
	EXP(x, n, p, s, ok)      \
	RECIPROCAL(x, n, p, ok)

// SLOPE computes rest from e⁻ᵘ; where that is infinite, rest becomes 0.
#define SLOPE(x, rest, n, p, s, ok) \
	EXP(x, n, p, s, ok)           \
	VMOVAPS  x, rest              \
	RECIPROCAL(x, n, p, ok)       \
	VMULPS.Z x, rest, ok, rest

// GATECONSTANTS broadcasts Linear and its negative to C2 and C0.
#define GATECONSTANTS(linear) \
	LOGISTICCONSTANTS          \
	VPXORD       Z16, Z16, Z16 \
	VBROADCASTSS linear, C2    \
	VSUBPS       C2, Z16, C0

// CUBICCONSTANTS broadcasts −Cubic, 3·Cubic and the largest finite number, too.
#define CUBICCONSTANTS(linear, cubic) \
	GATECONSTANTS(linear)      \
	VBROADCASTSS cubic, Z14    \
	VSUBPS       Z14, Z16, Z17 \
	VSUBPS       Z17, Z14, Z13 \
	VADDPS       Z14, Z13, Z14 \
	VBROADCASTSS 52(R8), Z16

#define LINEAR(a, x, q) VMULPS a, C0, x
#define CUBIC(a, x, q) \
	VMULPS      a, a, q    \
	VMINPS      Z16, q, q  \
	VMOVAPS     C0, x      \
	VFMADD231PS q, Z17, x  \
	VMULPS      a, x, x    \
	VFMADD213PS C2, Z14, q

// Because of the long arithmetic the processor alone does not look far enough ahead, above all for
// the lines that it writes.
#define FAR 1024
#define AHEAD(p) PREFETCHT0 FAR(p)
#define AHEAD2(p) \
	PREFETCHT0 FAR(p)    \
	PREFETCHT0 FAR+64(p)

// The loops over two vectors keep the second one in Z4 to Z7, Z9, Z11 and K3.

#define EXPSUM2 \
expSum2:                      \
	CMPQ CX, $(2*LANES)       \
	JLT  expSum1              \
	VMOVUPS (0*LANES)(SI), V0 \
	VMOVUPS (4*LANES)(SI), V4 \
	VSUBPS  C0, V0, V0        \
	VSUBPS  C0, V4, V4        \
	EXP(V0, V1, V2, V3, OK)   \
	EXP(V4, V5, V6, V7, K3)   \
	VMOVUPS V0, (0*LANES)(DI) \
	VMOVUPS V4, (4*LANES)(DI) \
	VADDPS  V0, SUM0, SUM0    \
	VADDPS  V4, SUM1, SUM1    \
	ADDQ $(8*LANES), SI       \
	ADDQ $(8*LANES), DI       \
	SUBQ $(2*LANES), CX       \
	JMP  expSum2

#define EXPSCALE2 \
expScale2:                    \
	CMPQ CX, $(2*LANES)       \
	JLT  expScale1            \
	VMOVUPS (0*LANES)(SI), V0 \
	VMOVUPS (4*LANES)(SI), V4 \
	AHEAD2(DI)                \
	AHEAD2(SI)                \
	VSUBPS  C0, V0, V0        \
	VSUBPS  C0, V4, V4        \
	EXP(V0, V1, V2, V3, OK)   \
	EXP(V4, V5, V6, V7, K3)   \
	VMULPS  C1, V0, V0        \
	VMULPS  C1, V4, V4        \
	VMOVUPS V0, (0*LANES)(DI) \
	VMOVUPS V4, (4*LANES)(DI) \
	ADDQ $(8*LANES), SI       \
	ADDQ $(8*LANES), DI       \
	SUBQ $(2*LANES), CX       \
	JMP  expScale2

#define GATE2(U) \
gate2:                            \
	CMPQ CX, $(2*LANES)           \
	JLT  gate1                    \
	VMOVUPS (0*LANES)(SI), V8     \
	VMOVUPS (4*LANES)(SI), V9     \
	AHEAD2(DI)                    \
	AHEAD2(SI)                    \
	AHEAD2(DX)                    \
	U(V8, V0, V10)                \
	U(V9, V4, V11)                \
	LOGISTIC(V0, V1, V2, V3, OK)  \
	LOGISTIC(V4, V5, V6, V7, K3)  \
	VMULPS  V8, V0, V0            \
	VMULPS  V9, V4, V4            \
	VMULPS  (0*LANES)(DX), V0, V0 \
	VMULPS  (4*LANES)(DX), V4, V4 \
	VMOVUPS V0, (0*LANES)(DI)     \
	VMOVUPS V4, (4*LANES)(DI)     \
	ADDQ $(8*LANES), SI           \
	ADDQ $(8*LANES), DX           \
	ADDQ $(8*LANES), DI           \
	SUBQ $(2*LANES), CX           \
	JMP  gate2

#define EXPSUM ·expSumAVX512
#define EXPSCALE ·expScaleAVX512
#define SIGMOID ·sigmoidAVX512
#define GATE ·gateAVX512
#define GATECUBIC ·gateCubicAVX512
#define GATEGRAD ·gateGradAVX512
#define GATEGRADCUBIC ·gateGradCubicAVX512

#include "exp_amd64.h"
