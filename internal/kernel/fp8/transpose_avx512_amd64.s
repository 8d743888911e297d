//go:build !noasm

#include "textflag.h"

// INTERLEAVE leaves in even and odd the bytes of each quarter of a and b in turn.
#define INTERLEAVE(a, b, even, odd) \
	VPUNPCKLBW b, a, even \
	VPUNPCKHBW b, a, odd

// The bits of the place of a byte in a quarter are the row r3 to r0 and the column c3 to c0. Each
// step moves the first of the row to the end of the column and the first of the column to the end
// of the row.
#define STEP(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15) \
	INTERLEAVE(a0, a8, b0, b1)    \
	INTERLEAVE(a1, a9, b2, b3)    \
	INTERLEAVE(a2, a10, b4, b5)   \
	INTERLEAVE(a3, a11, b6, b7)   \
	INTERLEAVE(a4, a12, b8, b9)   \
	INTERLEAVE(a5, a13, b10, b11) \
	INTERLEAVE(a6, a14, b12, b13) \
	INTERLEAVE(a7, a15, b14, b15)

// GET loads 16 columns of four rows, 16 rows apart, to the quarters of z, whose first is x.
#define GET(x, z) \
	VMOVDQU         (SI)(R10*1), x     \
	VBROADCASTI32X4 (BX)(R10*1), K1, z \
	VBROADCASTI32X4 (CX)(R10*1), K2, z \
	VBROADCASTI32X4 (DX)(R10*1), K3, z \
	ADDQ            R9, R10

// PUT stores a column.
#define PUT(z) \
	VMOVDQU64 z, (R11) \
	ADDQ      R8, R11

// Registers: SI, BX, CX and DX the first of every 16 rows, R9 their pitch, R12 16 times that, R10
// the distance to the current one; DI the first column, R8 the pitch of columns, R11 the current
// one; R13 the rows left.

// func transposeAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
TEXT ·transposeAVX512(SB), NOSPLIT, $0-40
	MOVQ  dst+0(FP), DI
	MOVQ  dstPitch+8(FP), R8
	MOVQ  src+16(FP), SI
	MOVQ  srcPitch+24(FP), R9
	MOVQ  rows+32(FP), R13
	MOVL  $0x00f0, R10
	KMOVW R10, K1
	MOVL  $0x0f00, R10
	KMOVW R10, K2
	MOVL  $0xf000, R10
	KMOVW R10, K3
	MOVQ  R9, R12
	SHLQ  $4, R12

loop:
	LEAQ (SI)(R12*1), BX
	LEAQ (SI)(R12*2), CX
	LEAQ (BX)(R12*2), DX
	XORQ R10, R10
	GET(X0, Z0)
	GET(X1, Z1)
	GET(X2, Z2)
	GET(X3, Z3)
	GET(X4, Z4)
	GET(X5, Z5)
	GET(X6, Z6)
	GET(X7, Z7)
	GET(X8, Z8)
	GET(X9, Z9)
	GET(X10, Z10)
	GET(X11, Z11)
	GET(X12, Z12)
	GET(X13, Z13)
	GET(X14, Z14)
	GET(X15, Z15)
	STEP(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)
	STEP(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	STEP(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)
	STEP(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	MOVQ DI, R11
	PUT(Z0)
	PUT(Z1)
	PUT(Z2)
	PUT(Z3)
	PUT(Z4)
	PUT(Z5)
	PUT(Z6)
	PUT(Z7)
	PUT(Z8)
	PUT(Z9)
	PUT(Z10)
	PUT(Z11)
	PUT(Z12)
	PUT(Z13)
	PUT(Z14)
	PUT(Z15)
	LEAQ (SI)(R12*4), SI
	ADDQ $64, DI
	SUBQ $64, R13
	JNZ  loop
	VZEROUPPER
	RET
