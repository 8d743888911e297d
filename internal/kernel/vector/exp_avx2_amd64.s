//go:build !noasm

#include "textflag.h"

// Registers: SI, DX sources, DI destination, CX elements left.

// Eight times all ones, then eight times zero: a mask of CX elements starts 4·CX
// bytes before the middle.
DATA tailTable<>+0(SB)/8, $0xffffffffffffffff
DATA tailTable<>+8(SB)/8, $0xffffffffffffffff
DATA tailTable<>+16(SB)/8, $0xffffffffffffffff
DATA tailTable<>+24(SB)/8, $0xffffffffffffffff
DATA tailTable<>+32(SB)/8, $0
DATA tailTable<>+40(SB)/8, $0
DATA tailTable<>+48(SB)/8, $0
DATA tailTable<>+56(SB)/8, $0
GLOBL tailTable<>(SB), RODATA|NOPTR, $64

// MASK sets Y15 to the CX < 8 elements that are left.
#define MASK \
	LEAQ    tailTable<>+32(SB), AX \
	SHLQ    $2, CX                 \
	SUBQ    CX, AX                 \
	VMOVUPS (AX), Y15

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

// EXP replaces Y0 by its exponential with R8 at the table; it uses Y1 to Y5. The
// comparison is "not less than", so NaN passes; maximum and minimum return their
// last source for NaN. The power of two is applied in two halves because it may lie
// beyond the exponents of normal numbers.
#define EXP \
	VMOVUPS      0(R8), Y4         \
	VCMPPS       $0x15, Y4, Y0, Y5 \
	VMAXPS       Y0, Y4, Y0        \
	VMOVUPS      32(R8), Y4        \
	VMINPS       Y0, Y4, Y0        \
	VMULPS       64(R8), Y0, Y1    \
	VROUNDPS     $8, Y1, Y1        \
	VFNMADD231PS 96(R8), Y1, Y0    \
	VFNMADD231PS 128(R8), Y1, Y0   \
	VMOVUPS      288(R8), Y2       \
	VFMADD213PS  256(R8), Y0, Y2   \
	VFMADD213PS  224(R8), Y0, Y2   \
	VFMADD213PS  192(R8), Y0, Y2   \
	VFMADD213PS  160(R8), Y0, Y2   \
	VMULPS       Y0, Y0, Y3        \
	VFMADD213PS  Y0, Y3, Y2        \
	VADDPS       320(R8), Y2, Y2   \
	VCVTPS2DQ    Y1, Y1            \
	VPSRAD       $1, Y1, Y3        \
	VPSUBD       Y3, Y1, Y1        \
	VPADDD       352(R8), Y3, Y3   \
	VPADDD       352(R8), Y1, Y1   \
	VPSLLD       $23, Y3, Y3       \
	VPSLLD       $23, Y1, Y1       \
	VMULPS       Y3, Y2, Y2        \
	VMULPS       Y1, Y2, Y2        \
	VANDPS       Y5, Y2, Y0

// func expSumAVX2(dst, x []float32, shift float32) float32
TEXT ·expSumAVX2(SB), NOSPLIT, $0-60
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), Y6
	VXORPS Y7, Y7, Y7
	LEAQ expTable8<>(SB), R8

expsum8:
	CMPQ CX, $8
	JLT  expsum1
	VMOVUPS (SI), Y0
	VSUBPS  Y6, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)
	VADDPS  Y0, Y7, Y7
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  expsum8

expsum1:
	TESTQ CX, CX
	JEQ   expsum0
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS     Y6, Y0, Y0
	EXP
	VMASKMOVPS Y0, Y15, (DI)
	VANDPS     Y15, Y0, Y0
	VADDPS     Y0, Y7, Y7

expsum0:
	VEXTRACTF128 $1, Y7, X1
	VADDPS       X1, X7, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, ret+56(FP)
	VZEROUPPER
	RET

// func sigmoidAVX2(dst, x []float32)
TEXT ·sigmoidAVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VXORPS Y6, Y6, Y6
	LEAQ expTable8<>(SB), R8
	VMOVUPS 320(R8), Y7

sigmoid8:
	CMPQ CX, $8
	JLT  sigmoid1
	VMOVUPS (SI), Y0
	VSUBPS  Y0, Y6, Y0
	EXP
	VADDPS  Y7, Y0, Y0
	VDIVPS  Y0, Y7, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  sigmoid8

sigmoid1:
	TESTQ CX, CX
	JEQ   sigmoid0
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS     Y0, Y6, Y0
	EXP
	VADDPS     Y7, Y0, Y0
	VDIVPS     Y0, Y7, Y0
	VMASKMOVPS Y0, Y15, (DI)

sigmoid0:
	VZEROUPPER
	RET

// func expScaleAVX2(dst, x []float32, shift, a float32)
TEXT ·expScaleAVX2(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), Y6
	VBROADCASTSS a+52(FP), Y7
	LEAQ expTable8<>(SB), R8

expscale8:
	CMPQ CX, $8
	JLT  expscale1
	VMOVUPS (SI), Y0
	VSUBPS  Y6, Y0, Y0
	EXP
	VMULPS  Y7, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  expscale8

expscale1:
	TESTQ CX, CX
	JEQ   expscale0
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS     Y6, Y0, Y0
	EXP
	VMULPS     Y7, Y0, Y0
	VMASKMOVPS Y0, Y15, (DI)

expscale0:
	VZEROUPPER
	RET

// func sumExpAVX2(x []float32, shift float32) float32
TEXT ·sumExpAVX2(SB), NOSPLIT, $0-36
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS shift+24(FP), Y6
	VXORPS Y7, Y7, Y7
	LEAQ expTable8<>(SB), R8

sumexp8:
	CMPQ CX, $8
	JLT  sumexp1
	VMOVUPS (SI), Y0
	VSUBPS  Y6, Y0, Y0
	EXP
	VADDPS  Y0, Y7, Y7
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  sumexp8

sumexp1:
	TESTQ CX, CX
	JEQ   sumexp0
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS     Y6, Y0, Y0
	EXP
	VANDPS     Y15, Y0, Y0
	VADDPS     Y0, Y7, Y7

sumexp0:
	VEXTRACTF128 $1, Y7, X1
	VADDPS       X1, X7, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, ret+32(FP)
	VZEROUPPER
	RET

// GATECONSTANTS sets R8 to the table of EXP and broadcasts Linear and its negative to
// Y6 and Y14.
#define GATECONSTANTS(linear) \
	LEAQ         expTable8<>(SB), R8 \
	VMOVUPS      320(R8), Y7         \
	VXORPS       Y13, Y13, Y13       \
	VBROADCASTSS linear, Y6          \
	VSUBPS       Y6, Y13, Y14

// CUBICCONSTANTS broadcasts Cubic and the largest finite number, too.
#define CUBICCONSTANTS(linear, cubic) \
	GATECONSTANTS(linear)        \
	VBROADCASTSS cubic, Y12      \
	MOVL         $0x7f7fffff, AX \
	MOVQ         AX, X13         \
	VBROADCASTSS X13, Y13

// LINEAR computes −u from a in Y8 to Y0 and leaves u′ in Y6; CUBIC computes both, u′ to Y11.
#define LINEAR VMULPS Y8, Y14, Y0
#define CUBIC \
	VMULPS       Y8, Y8, Y0   \
	VMINPS       Y13, Y0, Y0  \
	VMULPS       Y12, Y0, Y0  \
	VADDPS       Y0, Y0, Y11  \
	VADDPS       Y0, Y11, Y11 \
	VADDPS       Y6, Y11, Y11 \
	VSUBPS       Y0, Y14, Y0  \
	VMULPS       Y8, Y0, Y0

// finite8 is the largest finite number eight times.
DATA finite8<>+0(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+8(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+16(SB)/8, $0x7f7fffff7f7fffff
DATA finite8<>+24(SB)/8, $0x7f7fffff7f7fffff
GLOBL finite8<>(SB), RODATA|NOPTR, $32

// LOGISTIC replaces Y0 by the logistic function of its negative.
#define LOGISTIC \
	EXP               \
	VADDPS Y7, Y0, Y0 \
	VDIVPS Y0, Y7, Y0

// GATE stores a·σ(u)·b, with a at SI and b at DX.
#define GATE(U) \
gate8:                           \
	CMPQ CX, $8                  \
	JLT  gate1                   \
	VMOVUPS (SI), Y8             \
	U                            \
	LOGISTIC                     \
	VMULPS  Y8, Y0, Y0           \
	VMULPS  (DX), Y0, Y0         \
	VMOVUPS Y0, (DI)             \
	ADDQ $32, SI                 \
	ADDQ $32, DX                 \
	ADDQ $32, DI                 \
	SUBQ $8, CX                  \
	JMP  gate8                   \
gate1:                           \
	TESTQ CX, CX                 \
	JEQ   gate0                  \
	MASK                         \
	VMASKMOVPS (SI), Y15, Y8     \
	VMASKMOVPS (DX), Y15, Y9     \
	U                            \
	LOGISTIC                     \
	VMULPS     Y8, Y0, Y0        \
	VMULPS     Y9, Y0, Y0        \
	VMASKMOVPS Y0, Y15, (DI)     \
gate0:                           \
	VZEROUPPER                   \
	RET

// func gateAVX2(dst, a, b []float32, linear float32)
TEXT ·gateAVX2(SB), NOSPLIT, $0-76
	MOVQ dst_base+0(FP), DI
	MOVQ a_base+24(FP), SI
	MOVQ a_len+32(FP), CX
	MOVQ b_base+48(FP), DX
	GATECONSTANTS(linear+72(FP))
	GATE(LINEAR)

// func gateCubicAVX2(dst, a, b []float32, linear, cubic float32)
TEXT ·gateCubicAVX2(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ a_base+24(FP), SI
	MOVQ a_len+32(FP), CX
	MOVQ b_base+48(FP), DX
	CUBICCONSTANTS(linear+72(FP), cubic+76(FP))
	GATE(CUBIC)

// SLOPE turns −u in Y0, a in Y8, b in Y9, dy in Y10 and u′ in q into da in Y0 and db in
// Y10. 1 − σ(u) is computed as e⁻ᵘ·σ(u), which keeps its digits where it is small; where e⁻ᵘ
// is infinite, it is 0, because its factor a·σ(u) is 0.
#define SLOPE(q) \
	EXP                            \
	VMINPS       finite8<>(SB), Y0, Y1 \
	VADDPS       Y7, Y0, Y0        \
	VDIVPS       Y0, Y7, Y0        \
	VMULPS       Y0, Y1, Y1        \
	VMULPS       Y0, Y8, Y8        \
	VMULPS       q, Y1, Y1         \
	VFMADD231PS  Y8, Y1, Y0        \
	VMULPS       Y10, Y9, Y1   \
	VMULPS       Y8, Y10, Y10  \
	VMULPS       Y1, Y0, Y0

// GATEGRAD stores the gradients, da at DI and db at R9, with a at SI, b at DX and dy
// at R10; U leaves u′ in q.
#define GATEGRAD(U, q) \
gategrad8:                       \
	CMPQ CX, $8                  \
	JLT  gategrad1               \
	VMOVUPS (SI), Y8             \
	VMOVUPS (DX), Y9             \
	VMOVUPS (R10), Y10           \
	U                            \
	SLOPE(q)                     \
	VMOVUPS Y0, (DI)             \
	VMOVUPS Y10, (R9)            \
	ADDQ $32, SI                 \
	ADDQ $32, DX                 \
	ADDQ $32, R10                \
	ADDQ $32, DI                 \
	ADDQ $32, R9                 \
	SUBQ $8, CX                  \
	JMP  gategrad8               \
gategrad1:                       \
	TESTQ CX, CX                 \
	JEQ   gategrad0              \
	MASK                         \
	VMASKMOVPS (SI), Y15, Y8     \
	VMASKMOVPS (DX), Y15, Y9     \
	VMASKMOVPS (R10), Y15, Y10   \
	U                            \
	SLOPE(q)                     \
	VMASKMOVPS Y0, Y15, (DI)     \
	VMASKMOVPS Y10, Y15, (R9)    \
gategrad0:                       \
	VZEROUPPER                   \
	RET

// func gateGradAVX2(da, db, dy, a, b []float32, linear float32)
TEXT ·gateGradAVX2(SB), NOSPLIT, $0-124
	MOVQ da_base+0(FP), DI
	MOVQ db_base+24(FP), R9
	MOVQ dy_base+48(FP), R10
	MOVQ a_base+72(FP), SI
	MOVQ a_len+80(FP), CX
	MOVQ b_base+96(FP), DX
	GATECONSTANTS(linear+120(FP))
	GATEGRAD(LINEAR, Y6)

// func gateGradCubicAVX2(da, db, dy, a, b []float32, linear, cubic float32)
TEXT ·gateGradCubicAVX2(SB), NOSPLIT, $0-128
	MOVQ da_base+0(FP), DI
	MOVQ db_base+24(FP), R9
	MOVQ dy_base+48(FP), R10
	MOVQ a_base+72(FP), SI
	MOVQ a_len+80(FP), CX
	MOVQ b_base+96(FP), DX
	CUBICCONSTANTS(linear+120(FP), cubic+124(FP))
	GATEGRAD(CUBIC, Y11)
