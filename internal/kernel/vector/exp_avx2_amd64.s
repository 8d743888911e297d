//go:build !noasm

#include "avx2_amd64.h"

// The constants of exp_generic.go as bit patterns, each eight times (the registers
// do not hold them all), then 1 and the exponent bias.
DATA expTable8<>+0(SB)/8, $0xc2aeac4fc2aeac4f // expLow
DATA expTable8<>+8(SB)/8, $0xc2aeac4fc2aeac4f
DATA expTable8<>+16(SB)/8, $0xc2aeac4fc2aeac4f
DATA expTable8<>+24(SB)/8, $0xc2aeac4fc2aeac4f
DATA expTable8<>+32(SB)/8, $0x42b2000042b20000 // expHigh
DATA expTable8<>+40(SB)/8, $0x42b2000042b20000
DATA expTable8<>+48(SB)/8, $0x42b2000042b20000
DATA expTable8<>+56(SB)/8, $0x42b2000042b20000
DATA expTable8<>+64(SB)/8, $0x3fb8aa3b3fb8aa3b // log2e
DATA expTable8<>+72(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA expTable8<>+80(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA expTable8<>+88(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA expTable8<>+96(SB)/8, $0x3f3100003f310000 // ln2High
DATA expTable8<>+104(SB)/8, $0x3f3100003f310000
DATA expTable8<>+112(SB)/8, $0x3f3100003f310000
DATA expTable8<>+120(SB)/8, $0x3f3100003f310000
DATA expTable8<>+128(SB)/8, $0x3ae42ff03ae42ff0 // ln2Low
DATA expTable8<>+136(SB)/8, $0x3ae42ff03ae42ff0
DATA expTable8<>+144(SB)/8, $0x3ae42ff03ae42ff0
DATA expTable8<>+152(SB)/8, $0x3ae42ff03ae42ff0
DATA expTable8<>+160(SB)/8, $0x3efffffe3efffffe // expC2
DATA expTable8<>+168(SB)/8, $0x3efffffe3efffffe
DATA expTable8<>+176(SB)/8, $0x3efffffe3efffffe
DATA expTable8<>+184(SB)/8, $0x3efffffe3efffffe
DATA expTable8<>+192(SB)/8, $0x3e2aaa483e2aaa48 // expC3
DATA expTable8<>+200(SB)/8, $0x3e2aaa483e2aaa48
DATA expTable8<>+208(SB)/8, $0x3e2aaa483e2aaa48
DATA expTable8<>+216(SB)/8, $0x3e2aaa483e2aaa48
DATA expTable8<>+224(SB)/8, $0x3d2aac7a3d2aac7a // expC4
DATA expTable8<>+232(SB)/8, $0x3d2aac7a3d2aac7a
DATA expTable8<>+240(SB)/8, $0x3d2aac7a3d2aac7a
DATA expTable8<>+248(SB)/8, $0x3d2aac7a3d2aac7a
DATA expTable8<>+256(SB)/8, $0x3c091d383c091d38 // expC5
DATA expTable8<>+264(SB)/8, $0x3c091d383c091d38
DATA expTable8<>+272(SB)/8, $0x3c091d383c091d38
DATA expTable8<>+280(SB)/8, $0x3c091d383c091d38
DATA expTable8<>+288(SB)/8, $0x3ab511a93ab511a9 // expC6
DATA expTable8<>+296(SB)/8, $0x3ab511a93ab511a9
DATA expTable8<>+304(SB)/8, $0x3ab511a93ab511a9
DATA expTable8<>+312(SB)/8, $0x3ab511a93ab511a9
DATA expTable8<>+320(SB)/8, $0x3f8000003f800000 // 1
DATA expTable8<>+328(SB)/8, $0x3f8000003f800000
DATA expTable8<>+336(SB)/8, $0x3f8000003f800000
DATA expTable8<>+344(SB)/8, $0x3f8000003f800000
DATA expTable8<>+352(SB)/8, $0x0000007f0000007f // bias
DATA expTable8<>+360(SB)/8, $0x0000007f0000007f
DATA expTable8<>+368(SB)/8, $0x0000007f0000007f
DATA expTable8<>+376(SB)/8, $0x0000007f0000007f
GLOBL expTable8<>(SB), RODATA|NOPTR, $384

// finite8 is the largest finite number eight times.
DATA finite8<>+0(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+8(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+16(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+24(SB)/8, $0x7f7fffff7f7fffff
GLOBL finite8<>(SB), RODATA|NOPTR, $32

#define C0 Y14
#define C1 Y13
#define C2 Y6
#define SUM0 Y8
#define SUM1 Y9
#define OK Y5

#define EXPCONSTANTS LEAQ expTable8<>(SB), R8

// EXP has too many constants for the registers. The comparison is "not less than", so NaN passes;
// maximum and minimum return their last source for NaN. The power of two is applied in two halves
// because it may lie beyond the exponents of normal numbers.
#define EXP(x, n, p, s, ok) \
	VMOVUPS      0(R8), p        \
	VCMPPS       $0x15, p, x, ok \
	VMAXPS       x, p, x         \
	VMOVUPS      32(R8), p       \
	VMINPS       x, p, x         \
	VMULPS       64(R8), x, n    \
	VROUNDPS     $8, n, n        \
	VFNMADD231PS 96(R8), n, x    \
	VFNMADD231PS 128(R8), n, x   \
	VMOVUPS      288(R8), p      \
	VFMADD213PS  256(R8), x, p   \
	VFMADD213PS  224(R8), x, p   \
	VFMADD213PS  192(R8), x, p   \
	VFMADD213PS  160(R8), x, p   \
	VMULPS       x, x, s         \
	VFMADD213PS  x, s, p         \
	VADDPS       320(R8), p, p   \
	VCVTPS2DQ    n, n            \
	VPSRAD       $1, n, s        \
	VPSUBD       s, n, n         \
	VPADDD       352(R8), s, s   \
	VPADDD       352(R8), n, n   \
	VPSLLD       $23, s, s       \
	VPSLLD       $23, n, n       \
	VMULPS       s, p, p         \
	VMULPS       n, p, p         \
	VANDPS       ok, p, x

#define ADDTAIL(v, sum) \
	VANDPS Y15, v, v     \
	VADDPS v, sum, sum

// LOGISTIC has 1 in Y7.
#define LOGISTICCONSTANTS \
	EXPCONSTANTS         \
	VMOVUPS 320(R8), Y7

#define LOGISTIC(x, n, p, s, ok) \
	EXP(x, n, p, s, ok) \
	VADDPS Y7, x, x     \
	VDIVPS x, Y7, x

// SLOPE computes rest from e⁻ᵘ, limited to finite numbers: where that is infinite, rest becomes 0.
#define SLOPE(x, rest, n, p, s, ok) \
	EXP(x, n, p, s, ok)          \
	VMINPS finite8<>(SB), x, rest \
	VADDPS Y7, x, x              \
	VDIVPS x, Y7, x              \
	VMULPS x, rest, rest

// GATECONSTANTS broadcasts Linear and its negative to C2 and C0.
#define GATECONSTANTS(linear) \
	LOGISTICCONSTANTS    \
	VXORPS       C1, C1, C1 \
	VBROADCASTSS linear, C2 \
	VSUBPS       C2, C1, C0

// CUBICCONSTANTS broadcasts Cubic and the largest finite number, too.
#define CUBICCONSTANTS(linear, cubic) \
	GATECONSTANTS(linear)        \
	VBROADCASTSS cubic, Y12      \
	VMOVUPS      finite8<>(SB), C1

#define LINEAR(a, x, q) VMULPS a, C0, x
#define CUBIC(a, x, q) \
	VMULPS a, a, x   \
	VMINPS C1, x, x  \
	VMULPS Y12, x, x \
	VADDPS x, x, q   \
	VADDPS x, q, q   \
	VADDPS C2, q, q  \
	VSUBPS x, C0, x  \
	VMULPS a, x, x

#define AHEAD(p)
#define EXPSUM2
#define EXPSCALE2
#define GATE2(U)

#define EXPSUM ·expSumAVX2
#define EXPSCALE ·expScaleAVX2
#define SIGMOID ·sigmoidAVX2
#define GATE ·gateAVX2
#define GATECUBIC ·gateCubicAVX2
#define GATEGRAD ·gateGradAVX2
#define GATEGRADCUBIC ·gateGradCubicAVX2

#include "exp_amd64.h"

// func sumExpAVX2(x []float32, shift float32) float32
TEXT ·sumExpAVX2(SB), NOSPLIT, $0-36
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS shift+24(FP), Y6
	VXORPS Y7, Y7, Y7
	EXPCONSTANTS

sumExp1:
	CMPQ CX, $8
	JLT  sumExpTail
	VMOVUPS (SI), Y0
	VSUBPS  Y6, Y0, Y0
	EXP(Y0, Y1, Y2, Y3, Y5)
	VADDPS  Y0, Y7, Y7
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  sumExp1

sumExpTail:
	TESTQ CX, CX
	JEQ   sumExpEnd
	MASK
	TAIL((SI), Y0)
	VSUBPS Y6, Y0, Y0
	EXP(Y0, Y1, Y2, Y3, Y5)
	ADDTAIL(Y0, Y7)

sumExpEnd:
	VMOVAPS Y7, Y0
	FOLD(VADDPS, VADDSS)
	VMOVSS  X0, ret+32(FP)
	VZEROUPPER
	RET
