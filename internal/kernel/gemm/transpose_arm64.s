//go:build !noasm

#include "textflag.h"

// Registers: R0 to R3 the rows of the source; R4 a column of the destination and R5 its distance to
// the next one; R6 the quads left.

// func transpose4NEON(dst *float32, dstRow int, src *float32, srcRow, quads int)
TEXT ·transpose4NEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R4
	MOVD dstRow+8(FP), R5
	MOVD src+16(FP), R0
	MOVD srcRow+24(FP), R7
	MOVD quads+32(FP), R6
	LSL  $2, R5
	LSL  $2, R7
	ADD  R7, R0, R1
	ADD  R7, R1, R2
	ADD  R7, R2, R3

quad:
	VLD1.P 16(R0), [V0.S4]
	VLD1.P 16(R1), [V1.S4]
	VLD1.P 16(R2), [V2.S4]
	VLD1.P 16(R3), [V3.S4]
	VTRN1  V1.S4, V0.S4, V4.S4
	VTRN2  V1.S4, V0.S4, V5.S4
	VTRN1  V3.S4, V2.S4, V6.S4
	VTRN2  V3.S4, V2.S4, V7.S4
	VTRN1  V6.D2, V4.D2, V0.D2
	VTRN1  V7.D2, V5.D2, V1.D2
	VTRN2  V6.D2, V4.D2, V2.D2
	VTRN2  V7.D2, V5.D2, V3.D2
	VST1.P [V0.S4], (R4)(R5)
	VST1.P [V1.S4], (R4)(R5)
	VST1.P [V2.S4], (R4)(R5)
	VST1.P [V3.S4], (R4)(R5)
	SUBS   $1, R6
	BNE    quad
	RET
