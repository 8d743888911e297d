//go:build !noasm

#include "textflag.h"

// Registers: DI a panel, R9 the distance to the next one; SI its columns in the first
// row, R8 the distance of rows; R10 the bytes of a row of a panel; DX the panels
// left; R11, R12 and R13 the same for the rows of a panel.

// func spreadAVX512(dst *float32, panel, width int, src *float32, srcRow, rows, panels int)
TEXT ·spreadAVX512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ panel+8(FP), R9
	MOVQ width+16(FP), R10
	MOVQ src+24(FP), SI
	MOVQ srcRow+32(FP), R8
	MOVQ panels+48(FP), DX
	MOVQ R10, CX
	MOVQ $1, AX
	SHLQ CX, AX
	DECQ AX
	KMOVW AX, K1
	SHRQ $16, AX
	KMOVW AX, K2
	SHRQ $16, AX
	KMOVW AX, K3
	SHLQ $2, R8
	SHLQ $2, R9
	SHLQ $2, R10

spreadPanel:
	MOVQ DI, R11
	MOVQ SI, R12
	MOVQ rows+40(FP), R13
	CMPQ R10, $64
	JLE  spreadNarrow
	CMPQ R10, $128
	JLE  spreadMedium

spreadWide:
	VMOVUPS.Z  (R12), K1, Z0
	VMOVUPS.Z  64(R12), K2, Z1
	VMOVUPS.Z  128(R12), K3, Z2
	PREFETCHT0 (R11)(R9*1)
	PREFETCHT0 64(R11)(R9*1)
	PREFETCHT0 128(R11)(R9*1)
	VMOVUPS    Z0, K1, (R11)
	VMOVUPS    Z1, K2, 64(R11)
	VMOVUPS    Z2, K3, 128(R11)
	ADDQ       R8, R12
	ADDQ       R10, R11
	DECQ       R13
	JNZ        spreadWide
	JMP        spreadNext

spreadMedium:
	VMOVUPS.Z  (R12), K1, Z0
	VMOVUPS.Z  64(R12), K2, Z1
	PREFETCHT0 (R11)(R9*1)
	PREFETCHT0 64(R11)(R9*1)
	VMOVUPS    Z0, K1, (R11)
	VMOVUPS    Z1, K2, 64(R11)
	ADDQ       R8, R12
	ADDQ       R10, R11
	DECQ       R13
	JNZ        spreadMedium
	JMP        spreadNext

spreadNarrow:
	VMOVUPS.Z  (R12), K1, Z0
	PREFETCHT0 (R11)(R9*1)
	VMOVUPS    Z0, K1, (R11)
	ADDQ       R8, R12
	ADDQ       R10, R11
	DECQ       R13
	JNZ        spreadNarrow

spreadNext:
	ADDQ R9, DI
	ADDQ R10, SI
	DECQ DX
	JNZ  spreadPanel
	VZEROUPPER
	RET
