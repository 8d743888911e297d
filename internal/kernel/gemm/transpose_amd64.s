//go:build !noasm

#include "textflag.h"

// Rows 4j+i of the source go to lane j of register i; transposing each 4×4 lane in
// place then leaves column c of all rows in register c.

// Registers: SI, R9, R10, R11 rows 0, 4, 8 and 12; R8 and R12 one and three row
// distances; DI destination; DX its row distance, R13 three of them.

#define ARGUMENTS \
	MOVQ dst+0(FP), DI     \
	MOVQ dstRow+8(FP), DX  \
	MOVQ src+16(FP), SI    \
	MOVQ srcRow+24(FP), R8 \
	MOVQ quads+32(FP), CX  \
	SHLQ $2, DX            \
	SHLQ $2, R8            \
	LEAQ (R8)(R8*2), R12   \
	LEAQ (DX)(DX*2), R13   \
	LEAQ (SI)(R8*4), R9

// COLUMNS transposes the lanes of s0 to s3, with t0 to t3 as scratch, and stores four columns.
#define COLUMNS(s0, s1, s2, s3, t0, t1, t2, t3) \
	VUNPCKLPS s1, s0, t0      \
	VUNPCKHPS s1, s0, t1      \
	VUNPCKLPS s3, s2, t2      \
	VUNPCKHPS s3, s2, t3      \
	VUNPCKLPD t2, t0, s0      \
	VUNPCKHPD t2, t0, s1      \
	VUNPCKLPD t3, t1, s2      \
	VUNPCKHPD t3, t1, s3      \
	VMOVUPS   s0, (DI)        \
	VMOVUPS   s1, (DI)(DX*1)  \
	VMOVUPS   s2, (DI)(DX*2)  \
	VMOVUPS   s3, (DI)(R13*1)

// func transpose16AVX512(dst *float32, dstRow int, src *float32, srcRow, quads int)
TEXT ·transpose16AVX512(SB), NOSPLIT, $0-40
	ARGUMENTS
	LEAQ (R9)(R8*4), R10
	LEAQ (R10)(R8*4), R11

quad16:
	VMOVUPS      (SI), X0
	VMOVUPS      (SI)(R8*1), X1
	VMOVUPS      (SI)(R8*2), X2
	VMOVUPS      (SI)(R12*1), X3
	VINSERTF32X4 $1, (R9), Z0, Z0
	VINSERTF32X4 $1, (R9)(R8*1), Z1, Z1
	VINSERTF32X4 $1, (R9)(R8*2), Z2, Z2
	VINSERTF32X4 $1, (R9)(R12*1), Z3, Z3
	VINSERTF32X4 $2, (R10), Z0, Z0
	VINSERTF32X4 $2, (R10)(R8*1), Z1, Z1
	VINSERTF32X4 $2, (R10)(R8*2), Z2, Z2
	VINSERTF32X4 $2, (R10)(R12*1), Z3, Z3
	VINSERTF32X4 $3, (R11), Z0, Z0
	VINSERTF32X4 $3, (R11)(R8*1), Z1, Z1
	VINSERTF32X4 $3, (R11)(R8*2), Z2, Z2
	VINSERTF32X4 $3, (R11)(R12*1), Z3, Z3
	COLUMNS(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	ADDQ         $16, SI
	ADDQ         $16, R9
	ADDQ         $16, R10
	ADDQ         $16, R11
	LEAQ         (DI)(DX*4), DI
	DECQ         CX
	JNE          quad16
	VZEROUPPER
	RET

// func transpose8AVX2(dst *float32, dstRow int, src *float32, srcRow, quads int)
TEXT ·transpose8AVX2(SB), NOSPLIT, $0-40
	ARGUMENTS

quad8:
	VMOVUPS     (SI), X0
	VMOVUPS     (SI)(R8*1), X1
	VMOVUPS     (SI)(R8*2), X2
	VMOVUPS     (SI)(R12*1), X3
	VINSERTF128 $1, (R9), Y0, Y0
	VINSERTF128 $1, (R9)(R8*1), Y1, Y1
	VINSERTF128 $1, (R9)(R8*2), Y2, Y2
	VINSERTF128 $1, (R9)(R12*1), Y3, Y3
	COLUMNS(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7)
	ADDQ        $16, SI
	ADDQ        $16, R9
	LEAQ        (DI)(DX*4), DI
	DECQ        CX
	JNE         quad8
	VZEROUPPER
	RET
