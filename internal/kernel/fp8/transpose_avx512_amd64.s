//go:build !noasm

#include "funcdata.h"
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

// GET loads 64 columns of a row.
#define GET(z) \
	VMOVDQU64 (DX), z \
	ADDQ      R9, DX

// KEEP stores four quarters of columns in the frame.
#define KEEP(z) \
	VMOVDQA64 z, (R11) \
	ADDQ      R10, R11

// Registers: SI the first of 16 rows, DX one of them, R9 their pitch; BX the first of 16 lines of
// the frame for them, R11 one of them, R10 their pitch: the lines of four columns, 16 apart, of all
// rows and one more, so that they are in different sets of a cache. DI a column, R8 the pitch of
// columns, R12 16 times that, R13 48 times; BX
// whether the result is stored past the caches.

// func transposeAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int, stream bool)
TEXT ·transposeAVX512(SB), 0, $33856-41
	NO_LOCAL_POINTERS
	MOVQ dst+0(FP), DI
	MOVQ dstPitch+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	LEAQ 64(CX*4), R10
	SHRQ $4, CX
	LEAQ lines-33856(SP), AX
	ADDQ $63, AX
	ANDQ $-64, AX
	MOVQ AX, BX

rows:
	MOVQ SI, DX
	GET(Z0)
	GET(Z1)
	GET(Z2)
	GET(Z3)
	GET(Z4)
	GET(Z5)
	GET(Z6)
	GET(Z7)
	GET(Z8)
	GET(Z9)
	GET(Z10)
	GET(Z11)
	GET(Z12)
	GET(Z13)
	GET(Z14)
	GET(Z15)
	STEP(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)
	STEP(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	STEP(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)
	STEP(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	MOVQ DX, SI
	MOVQ BX, R11
	KEEP(Z0)
	KEEP(Z1)
	KEEP(Z2)
	KEEP(Z3)
	KEEP(Z4)
	KEEP(Z5)
	KEEP(Z6)
	KEEP(Z7)
	KEEP(Z8)
	KEEP(Z9)
	KEEP(Z10)
	KEEP(Z11)
	KEEP(Z12)
	KEEP(Z13)
	KEEP(Z14)
	KEEP(Z15)
	ADDQ $64, BX
	DECQ CX
	JNZ  rows

	MOVQ R8, R12
	SHLQ $4, R12
	LEAQ (R12)(R12*2), R13
	MOVQ rows+32(FP), CX
	SHRQ $6, CX
	MOVQ $16, R9
	MOVB stream+40(FP), BX

columns:
	MOVQ AX, SI
	MOVQ DI, DX
	MOVQ CX, R11

lines:
	VMOVDQA64  (SI), Z0
	VMOVDQA64  64(SI), Z1
	VMOVDQA64  128(SI), Z2
	VMOVDQA64  192(SI), Z3
	VSHUFI32X4 $0x44, Z1, Z0, Z4
	VSHUFI32X4 $0xee, Z1, Z0, Z5
	VSHUFI32X4 $0x44, Z3, Z2, Z6
	VSHUFI32X4 $0xee, Z3, Z2, Z7
	VSHUFI32X4 $0x88, Z6, Z4, Z0
	VSHUFI32X4 $0xdd, Z6, Z4, Z1
	VSHUFI32X4 $0x88, Z7, Z5, Z2
	VSHUFI32X4 $0xdd, Z7, Z5, Z3
	TESTB      BX, BX
	JNE        past
	VMOVDQU64  Z0, (DX)
	VMOVDQU64  Z1, (DX)(R12*1)
	VMOVDQU64  Z2, (DX)(R12*2)
	VMOVDQU64  Z3, (DX)(R13*1)

stored:
	ADDQ       $256, SI
	ADDQ       $64, DX
	DECQ       R11
	JNZ        lines
	ADDQ       R10, AX
	ADDQ       R8, DI
	DECQ       R9
	JNZ        columns
	SFENCE
	VZEROUPPER
	RET

past:
	VMOVNTDQ Z0, (DX)
	VMOVNTDQ Z1, (DX)(R12*1)
	VMOVNTDQ Z2, (DX)(R12*2)
	VMOVNTDQ Z3, (DX)(R13*1)
	JMP      stored
