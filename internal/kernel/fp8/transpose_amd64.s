//go:build !noasm

#include "textflag.h"

// INTERLEAVE leaves in even and odd the bytes of a and b in turn.
#define INTERLEAVE(a, b, even, odd) \
	VPUNPCKLBW b, a, even \
	VPUNPCKHBW b, a, odd

// The bits of the place of a byte are the row r2 r1 r0 and the column c3 to c0. Each step moves the
// first of the row to the end of the column and the first of the column to the end of the row.
#define STEP(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
	INTERLEAVE(a0, a4, b0, b1) \
	INTERLEAVE(a1, a5, b2, b3) \
	INTERLEAVE(a2, a6, b4, b5) \
	INTERLEAVE(a3, a7, b6, b7)

// PUT stores the two columns in x.
#define PUT(x) \
	VMOVQ   x, (R11)         \
	VMOVHPS x, (R11)(R8*1)   \
	LEAQ    (R11)(R8*2), R11

// func transposeAVX2(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
TEXT ·transposeAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ dstPitch+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	LEAQ (R9)(R9*2), R10

loop:
	LEAQ    (SI)(R9*4), DX
	VMOVDQU (SI), X0
	VMOVDQU (SI)(R9*1), X1
	VMOVDQU (SI)(R9*2), X2
	VMOVDQU (SI)(R10*1), X3
	VMOVDQU (DX), X4
	VMOVDQU (DX)(R9*1), X5
	VMOVDQU (DX)(R9*2), X6
	VMOVDQU (DX)(R10*1), X7
	STEP(X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15)
	STEP(X8, X9, X10, X11, X12, X13, X14, X15, X0, X1, X2, X3, X4, X5, X6, X7)
	STEP(X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15)
	MOVQ    DI, R11
	PUT(X8)
	PUT(X9)
	PUT(X10)
	PUT(X11)
	PUT(X12)
	PUT(X13)
	PUT(X14)
	PUT(X15)
	LEAQ    (SI)(R9*8), SI
	ADDQ    $8, DI
	SUBQ    $8, CX
	JNZ     loop
	RET
