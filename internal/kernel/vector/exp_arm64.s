//go:build !noasm

#include "textflag.h"
#include "neon_arm64.h"

// The constants of exp_generic.go as bit patterns, then 1, the exponent bias and the largest finite
// number.
DATA expTable<>+0(SB)/4, $0xc2aeac4f // expLow
DATA expTable<>+4(SB)/4, $0x42b20000 // expHigh
DATA expTable<>+8(SB)/4, $0x3fb8aa3b // log2e
DATA expTable<>+12(SB)/4, $0x3f310000 // ln2High
DATA expTable<>+16(SB)/4, $0x3ae42ff0 // ln2Low
DATA expTable<>+20(SB)/4, $0x3efffffe // expC2
DATA expTable<>+24(SB)/4, $0x3e2aaa48 // expC3
DATA expTable<>+28(SB)/4, $0x3d2aac7a // expC4
DATA expTable<>+32(SB)/4, $0x3c091d38 // expC5
DATA expTable<>+36(SB)/4, $0x3ab511a9 // expC6
DATA expTable<>+40(SB)/4, $0x3f800000 // 1
DATA expTable<>+44(SB)/4, $0x0000007f // bias
DATA expTable<>+48(SB)/4, $0x7f7fffff // largest
GLOBL expTable<>(SB), RODATA|NOPTR, $52

// Registers: V16 to V28 the table. R0 and R4 destinations, R1, R2 and R5 sources, R3 the elements
// left, a multiple of 4 and positive.

#define EXPCONSTANTS \
	MOVD    $expTable<>(SB), R6 \
	VLD1R.P 4(R6), [V16.S4]     \
	VLD1R.P 4(R6), [V17.S4]     \
	VLD1R.P 4(R6), [V18.S4]     \
	VLD1R.P 4(R6), [V19.S4]     \
	VLD1R.P 4(R6), [V20.S4]     \
	VLD1R.P 4(R6), [V21.S4]     \
	VLD1R.P 4(R6), [V22.S4]     \
	VLD1R.P 4(R6), [V23.S4]     \
	VLD1R.P 4(R6), [V24.S4]     \
	VLD1R.P 4(R6), [V25.S4]     \
	VLD1R.P 4(R6), [V26.S4]     \
	VLD1R.P 4(R6), [V27.S4]     \
	VLD1R.P 4(R6), [V28.S4]

// EXP replaces V0 by its exponential, with V1 to V5 as scratch. Maximum and minimum keep NaN, and
// the comparison does not hold for it. The power of two is applied in two halves because it may lie
// beyond the exponents of normal numbers.
#define EXP \
	FCMGT(5, 16, 0) \
	FMAX(0, 0, 16)  \
	FMIN(0, 0, 17)  \
	FMUL(1, 0, 18)  \
	FRINTN(1, 1)    \
	FMLS(0, 1, 19)  \
	FMLS(0, 1, 20)  \
	COPY(2, 24)     \
	FMLA(2, 25, 0)  \
	COPY(3, 23)     \
	FMLA(3, 2, 0)   \
	COPY(2, 22)     \
	FMLA(2, 3, 0)   \
	COPY(3, 21)     \
	FMLA(3, 2, 0)   \
	FMUL(4, 0, 0)   \
	FMLA(0, 3, 4)   \
	FADD(0, 0, 26)  \
	FCVTNS(1, 1)    \
	HALVE(2, 1)     \
	ISUB(1, 1, 2)   \
	IADD(2, 2, 27)  \
	IADD(1, 1, 27)  \
	EXPONENT(2, 2)  \
	EXPONENT(1, 1)  \
	FMUL(0, 0, 2)   \
	FMUL(0, 0, 1)   \
	BIC(0, 0, 5)

// func expSumNEON(dst, x *float32, n int, shift float32) (sum float32)
TEXT ·expSumNEON(SB), NOSPLIT, $0-36
	MOVD  dst+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R3
	FMOVS shift+24(FP), F6
	VDUP  V6.S[0], V6.S4
	VEOR  V7.B16, V7.B16, V7.B16
	EXPCONSTANTS

expSum:
	VLD1.P 16(R1), [V0.S4]
	FSUB(0, 0, 6)
	EXP
	VST1.P [V0.S4], 16(R0)
	FADD(7, 7, 0)
	SUBS   $4, R3
	BNE    expSum
	FADDP(7, 7, 7)
	FADDP(7, 7, 7)
	FMOVS F7, sum+32(FP)
	RET

// func expScaleNEON(dst, x *float32, n int, shift, a float32)
TEXT ·expScaleNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R3
	FMOVS shift+24(FP), F6
	FMOVS a+28(FP), F7
	VDUP  V6.S[0], V6.S4
	EXPCONSTANTS

expScale:
	VLD1.P 16(R1), [V0.S4]
	FSUB(0, 0, 6)
	EXP
	FMULE(0, 0, 7)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    expScale
	RET

// func sigmoidNEON(dst, x *float32, n int)
TEXT ·sigmoidNEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R3
	EXPCONSTANTS

sigmoid:
	VLD1.P 16(R1), [V0.S4]
	FNEG(0, 0)
	EXP
	FADD(0, 0, 26)
	FDIV(0, 26, 0)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    sigmoid
	RET

// SLOPES computes q, a² limited to finite numbers, to V30, and −a·(linear + cubic·q) to V0, with a
// in V8, linear in V6 and cubic in V7.
#define SLOPES \
	FMUL(30, 8, 8)   \
	FMIN(30, 30, 28) \
	COPY(0, 6)       \
	FMLA(0, 30, 7)   \
	FMUL(0, 0, 8)    \
	FNEG(0, 0)

// func gateNEON(dst, a, b *float32, n int, linear, cubic float32)
TEXT ·gateNEON(SB), NOSPLIT, $0-40
	MOVD  dst+0(FP), R0
	MOVD  a+8(FP), R1
	MOVD  b+16(FP), R2
	MOVD  n+24(FP), R3
	FMOVS linear+32(FP), F6
	FMOVS cubic+36(FP), F7
	VDUP  V6.S[0], V6.S4
	VDUP  V7.S[0], V7.S4
	EXPCONSTANTS

gate:
	VLD1.P 16(R1), [V8.S4]
	VLD1.P 16(R2), [V9.S4]
	SLOPES
	EXP
	FADD(0, 0, 26)
	FDIV(0, 26, 0)
	FMUL(0, 0, 8)
	FMUL(0, 0, 9)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    gate
	RET

// func gateGradNEON(da, db, dy, a, b *float32, n int, linear, cubic float32)
TEXT ·gateGradNEON(SB), NOSPLIT, $0-56
	MOVD  da+0(FP), R0
	MOVD  db+8(FP), R4
	MOVD  dy+16(FP), R5
	MOVD  a+24(FP), R1
	MOVD  b+32(FP), R2
	MOVD  n+40(FP), R3
	FMOVS linear+48(FP), F6
	FMOVS cubic+52(FP), F7
	VDUP  V6.S[0], V6.S4
	VDUP  V7.S[0], V7.S4
	FADD(31, 7, 7)
	FADD(31, 31, 7)
	EXPCONSTANTS

gateGrad:
	VLD1.P 16(R1), [V8.S4]
	VLD1.P 16(R2), [V9.S4]
	VLD1.P 16(R5), [V10.S4]
	SLOPES
	EXP
	FADD(1, 0, 26)
	FDIV(1, 26, 1)  // σ
	FMIN(0, 0, 28)
	FMUL(0, 0, 1)   // 1−σ
	FMUL(8, 8, 1)   // gated
	COPY(2, 6)
	FMLA(2, 30, 31)
	FMUL(0, 0, 2)
	FMLA(1, 8, 0)
	FMUL(9, 9, 10)
	FMUL(1, 1, 9)
	FMUL(8, 8, 10)
	VST1.P [V1.S4], 16(R0)
	VST1.P [V8.S4], 16(R4)
	SUBS   $4, R3
	BNE    gateGrad
	RET
