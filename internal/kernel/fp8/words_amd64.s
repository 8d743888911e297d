//go:build !noasm

#include "textflag.h"

// Registers: SI the first row, BX row 4, R9 the pitch of rows, R10 three times that; DI the first
// column, DX column 4, R8 the pitch of columns, R11 three times that; CX the rows left.

// func transposeWordsAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
TEXT ·transposeWordsAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ dstPitch+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11
	LEAQ (DI)(R8*4), DX

wordsLoop:
	LEAQ        (SI)(R9*4), BX
	VMOVDQU64   (SI), Z0
	VMOVDQU64   (SI)(R9*1), Z1
	VMOVDQU64   (SI)(R9*2), Z2
	VMOVDQU64   (SI)(R10*1), Z3
	VMOVDQU64   (BX), Z4
	VMOVDQU64   (BX)(R9*1), Z5
	VMOVDQU64   (BX)(R9*2), Z6
	VMOVDQU64   (BX)(R10*1), Z7
	VPUNPCKLQDQ Z1, Z0, Z8
	VPUNPCKHQDQ Z1, Z0, Z1
	VPUNPCKLQDQ Z3, Z2, Z0
	VPUNPCKHQDQ Z3, Z2, Z3
	VPUNPCKLQDQ Z5, Z4, Z2
	VPUNPCKHQDQ Z5, Z4, Z5
	VPUNPCKLQDQ Z7, Z6, Z4
	VPUNPCKHQDQ Z7, Z6, Z7
	VSHUFI64X2  $0x88, Z0, Z8, Z6
	VSHUFI64X2  $0xdd, Z0, Z8, Z0
	VSHUFI64X2  $0x88, Z4, Z2, Z8
	VSHUFI64X2  $0xdd, Z4, Z2, Z4
	VSHUFI64X2  $0x88, Z8, Z6, Z2
	VSHUFI64X2  $0xdd, Z8, Z6, Z8
	VSHUFI64X2  $0x88, Z4, Z0, Z6
	VSHUFI64X2  $0xdd, Z4, Z0, Z4
	VSHUFI64X2  $0x88, Z3, Z1, Z0
	VSHUFI64X2  $0xdd, Z3, Z1, Z3
	VSHUFI64X2  $0x88, Z7, Z5, Z1
	VSHUFI64X2  $0xdd, Z7, Z5, Z7
	VSHUFI64X2  $0x88, Z1, Z0, Z5
	VSHUFI64X2  $0xdd, Z1, Z0, Z1
	VSHUFI64X2  $0x88, Z7, Z3, Z0
	VSHUFI64X2  $0xdd, Z7, Z3, Z7
	VMOVDQU64   Z2, (DI)
	VMOVDQU64   Z5, (DI)(R8*1)
	VMOVDQU64   Z6, (DI)(R8*2)
	VMOVDQU64   Z0, (DI)(R11*1)
	VMOVDQU64   Z8, (DX)
	VMOVDQU64   Z1, (DX)(R8*1)
	VMOVDQU64   Z4, (DX)(R8*2)
	VMOVDQU64   Z7, (DX)(R11*1)
	LEAQ        (SI)(R9*8), SI
	ADDQ        $64, DI
	ADDQ        $64, DX
	SUBQ        $8, CX
	JNZ         wordsLoop
	VZEROUPPER
	RET

// Registers: SI source, R9 its pitch, DI destination, R8 its pitch, CX the rows left; AX the place
// in a row, DX its end.

// func copyRowsAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows, n int)
TEXT ·copyRowsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ dstPitch+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	MOVQ n+40(FP), DX

copyRow:
	XORQ AX, AX

copyLine:
	VMOVDQU64 (SI)(AX*1), Z0
	VMOVDQU64 Z0, (DI)(AX*1)
	ADDQ      $64, AX
	CMPQ      AX, DX
	JNE       copyLine
	ADDQ      R9, SI
	ADDQ      R8, DI
	DECQ      CX
	JNZ       copyRow
	VZEROUPPER
	RET
