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

// The constants of curve.go as bit patterns.
DATA curveTable<>+0(SB)/4, $0x7fffffff  // magnitude
DATA curveTable<>+4(SB)/4, $0x80000000  // sign
DATA curveTable<>+8(SB)/4, $0x3f800000  // 1
DATA curveTable<>+12(SB)/4, $0x40000000 // 2
DATA curveTable<>+16(SB)/4, $0xbf000000 // -1/2
DATA curveTable<>+20(SB)/4, $0x3ecc422a // normalScale
DATA curveTable<>+24(SB)/4, $0x3eb33333 // normalStep
DATA curveTable<>+28(SB)/4, $0x3e0ef8ea // normalC0
DATA curveTable<>+32(SB)/4, $0x3e0f37f3 // normalC1
DATA curveTable<>+36(SB)/4, $0x3df56af4 // normalC2
DATA curveTable<>+40(SB)/4, $0x3dd8147e // normalC3
DATA curveTable<>+44(SB)/4, $0xbcbd4fd5 // normalC4
DATA curveTable<>+48(SB)/4, $0x3e22fe55 // normalC5
DATA curveTable<>+52(SB)/4, $0xbe82ecde // normalC6
DATA curveTable<>+56(SB)/4, $0x3e136d31 // normalC7
DATA curveTable<>+60(SB)/4, $0xbceec337 // normalC8
DATA curveTable<>+64(SB)/4, $0x3f200000 // tanhBound
DATA curveTable<>+68(SB)/4, $0xbeaaaa99 // tanhC0
DATA curveTable<>+72(SB)/4, $0x3e088393 // tanhC1
DATA curveTable<>+76(SB)/4, $0xbd5c1e2d // tanhC2
DATA curveTable<>+80(SB)/4, $0x3ca9134e // tanhC3
DATA curveTable<>+84(SB)/4, $0xbbbaf0ea // tanhC4
GLOBL curveTable<>(SB), RODATA|NOPTR, $88

// TERM computes p·x + the constant at an offset; tmp is scratch.
#define TERM(at, x, p, tmp) \
	VBROADCASTSS at(R10), tmp \
	VFMADD213PS  tmp, x, p

// NORMAL computes the distribution function of Y8 in Y6 and the density in Y0.
#define NORMAL \
	VBROADCASTSS 0(R10), Y9     \
	VANDPS       Y8, Y9, Y9     \
	VBROADCASTSS 16(R10), Y1    \
	VMULPS       Y8, Y8, Y0     \
	VMULPS       Y1, Y0, Y0     \
	EXP(Y0, Y1, Y2, Y3, OK)     \
	VBROADCASTSS 8(R10), Y7     \
	VBROADCASTSS 24(R10), Y4    \
	VFMADD213PS  Y7, Y9, Y4     \
	VDIVPS       Y4, Y7, Y4     \
	VBROADCASTSS 60(R10), Y6    \
	TERM(56, Y4, Y6, Y1)        \
	TERM(52, Y4, Y6, Y1)        \
	TERM(48, Y4, Y6, Y1)        \
	TERM(44, Y4, Y6, Y1)        \
	TERM(40, Y4, Y6, Y1)        \
	TERM(36, Y4, Y6, Y1)        \
	TERM(32, Y4, Y6, Y1)        \
	TERM(28, Y4, Y6, Y1)        \
	VMULPS       Y4, Y6, Y6     \
	VMULPS       Y0, Y6, Y6     \
	VSUBPS       Y6, Y7, Y1     \
	VBLENDVPS    Y8, Y6, Y1, Y6 \
	VBROADCASTSS 20(R10), Y1    \
	VMULPS       Y1, Y0, Y0

// func normalAVX2(cdf, pdf, x []float32)
TEXT ·normalAVX2(SB), NOSPLIT, $0-72
	MOVQ cdf_base+0(FP), DI
	MOVQ pdf_base+24(FP), R9
	MOVQ x_base+48(FP), SI
	MOVQ x_len+56(FP), CX
	LEAQ curveTable<>(SB), R10
	EXPCONSTANTS

normal1:
	CMPQ CX, $8
	JLT  normalTail
	VMOVUPS (SI), Y8
	NORMAL
	VMOVUPS Y6, (DI)
	VMOVUPS Y0, (R9)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, R9
	SUBQ $8, CX
	JMP  normal1

normalTail:
	TESTQ CX, CX
	JEQ   normalEnd
	MASK
	TAIL((SI), Y8)
	NORMAL
	PUTTAIL(Y6, (DI))
	PUTTAIL(Y0, (R9))

normalEnd:
	VZEROUPPER
	RET

// SOFTCAP replaces Y8 by its soft cap in Y0; C0 is the inverse of the limit and C1 the limit.
#define SOFTCAP \
	VMULPS       C0, Y8, Y8     \
	VBROADCASTSS 0(R10), Y9     \
	VANDPS       Y8, Y9, Y9     \
	VADDPS       Y9, Y9, Y0     \
	EXP(Y0, Y1, Y2, Y3, OK)     \
	VBROADCASTSS 8(R10), Y7     \
	VADDPS       Y7, Y0, Y0     \
	VBROADCASTSS 12(R10), Y4    \
	VDIVPS       Y0, Y4, Y0     \
	VSUBPS       Y0, Y7, Y0     \
	VBROADCASTSS 4(R10), Y1     \
	VANDPS       Y8, Y1, Y1     \
	VORPS        Y1, Y0, Y0     \
	VMULPS       Y8, Y8, Y4     \
	VBROADCASTSS 84(R10), Y6    \
	TERM(80, Y4, Y6, Y1)        \
	TERM(76, Y4, Y6, Y1)        \
	TERM(72, Y4, Y6, Y1)        \
	TERM(68, Y4, Y6, Y1)        \
	VMULPS       Y4, Y6, Y6     \
	VFMADD213PS  Y8, Y8, Y6     \
	VBROADCASTSS 64(R10), Y1    \
	VSUBPS       Y1, Y9, Y1     \
	VBLENDVPS    Y1, Y6, Y0, Y0 \
	VMULPS       C1, Y0, Y0

// func softCapAVX2(dst, x []float32, inverse, limit float32)
TEXT ·softCapAVX2(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS inverse+48(FP), C0
	VBROADCASTSS limit+52(FP), C1
	LEAQ curveTable<>(SB), R10
	EXPCONSTANTS

softCap1:
	CMPQ CX, $8
	JLT  softCapTail
	VMOVUPS (SI), Y8
	SOFTCAP
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  softCap1

softCapTail:
	TESTQ CX, CX
	JEQ   softCapEnd
	MASK
	TAIL((SI), Y8)
	SOFTCAP
	PUTTAIL(Y0, (DI))

softCapEnd:
	VZEROUPPER
	RET
