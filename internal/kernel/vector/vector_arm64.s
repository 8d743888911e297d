//go:build !noasm

#include "textflag.h"
#include "neon_arm64.h"

// All functions take n > 0 elements, a multiple of 4, but addProductsNEON one of 16. Registers: R0
// destination, R1 and R2 sources, R3 the elements left.

#define ARGUMENTS3 \
	MOVD dst+0(FP), R0 \
	MOVD x+8(FP), R1   \
	MOVD y+16(FP), R2  \
	MOVD n+24(FP), R3

// func addProductsNEON(s *[16]float32, x, y *float32, n int)
TEXT ·addProductsNEON(SB), NOSPLIT, $0-32
	MOVD s+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2
	MOVD n+24(FP), R3
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]

products:
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R2), [V16.S4, V17.S4, V18.S4, V19.S4]
	FMLA(0, 4, 16)
	FMLA(1, 5, 17)
	FMLA(2, 6, 18)
	FMLA(3, 7, 19)
	SUBS   $16, R3
	BNE    products
	VST1   [V0.S4, V1.S4, V2.S4, V3.S4], (R0)
	RET

// func axpyNEON(y, x *float32, n int, a float32)
TEXT ·axpyNEON(SB), NOSPLIT, $0-28
	MOVD  y+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R3
	FMOVS a+24(FP), F4

axpy:
	VLD1.P 16(R1), [V0.S4]
	VLD1   (R0), [V1.S4]
	FMLAE(1, 0, 4)
	VST1.P [V1.S4], 16(R0)
	SUBS   $4, R3
	BNE    axpy
	RET

// func scaleNEON(dst, x *float32, n int, a float32)
TEXT ·scaleNEON(SB), NOSPLIT, $0-28
	MOVD  dst+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R3
	FMOVS a+24(FP), F4

scale:
	VLD1.P 16(R1), [V0.S4]
	FMULE(0, 0, 4)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    scale
	RET

// func addNEON(dst, x, y *float32, n int)
TEXT ·addNEON(SB), NOSPLIT, $0-32
	ARGUMENTS3

add:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FADD(0, 0, 1)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    add
	RET

// func mulNEON(dst, x, y *float32, n int)
TEXT ·mulNEON(SB), NOSPLIT, $0-32
	ARGUMENTS3

mul:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FMUL(0, 0, 1)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    mul
	RET

// func mulSubNEON(dst, x, y *float32, n int, c float32)
TEXT ·mulSubNEON(SB), NOSPLIT, $0-36
	ARGUMENTS3
	FMOVS c+32(FP), F4
	VDUP  V4.S[0], V4.S4

mulSub:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FSUB(1, 1, 4)
	FMUL(0, 0, 1)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    mulSub
	RET

// func mulScaleNEON(dst, x, w *float32, n int, scale float32)
TEXT ·mulScaleNEON(SB), NOSPLIT, $0-36
	MOVD  dst+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  w+16(FP), R2
	MOVD  n+24(FP), R3
	FMOVS scale+32(FP), F4

mulScale:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FMULE(0, 0, 4)
	FMUL(0, 0, 1)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R3
	BNE    mulScale
	RET

// func sumSquaresNEON(x *float32, n int) (sum float64)
TEXT ·sumSquaresNEON(SB), NOSPLIT, $0-24
	MOVD x+0(FP), R1
	MOVD n+8(FP), R3
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

squares:
	VLD1.P 16(R1), [V0.S4]
	FCVTL2(1, 0)
	FCVTL(0, 0)
	FMLAD(2, 0, 0)
	FMLAD(3, 1, 1)
	SUBS   $4, R3
	BNE    squares
	FADDD(2, 2, 3)
	FADDPD(2, 2)
	FMOVD F2, sum+16(FP)
	RET

// func maximumNEON(x *float32, n int) float32
TEXT ·maximumNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R1
	MOVD n+8(FP), R3
	VLD1 (R1), [V0.S4]

maximum:
	VLD1.P 16(R1), [V1.S4]
	FMAX(0, 0, 1)
	SUBS   $4, R3
	BNE    maximum
	FMAXV(0, 0)
	FMOVS F0, ret+16(FP)
	RET
