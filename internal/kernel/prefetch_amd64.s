//go:build !noasm

#include "textflag.h"

// Registers: SI a row, R8 the distance to the next one, R9 the distance from the first byte of a row
// to its last; CX the rows left; DI a line, DX the last byte of its row.

// func PrefetchRows(p *byte, pitch, rows, n int)
TEXT ·PrefetchRows(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ pitch+8(FP), R8
	MOVQ rows+16(FP), CX
	MOVQ n+24(FP), R9
	DECQ R9

row:
	LEAQ (SI)(R9*1), DX
	MOVQ SI, DI
	ANDQ $-64, DI

line:
	PREFETCHT1 (DI)
	ADDQ $64, DI
	CMPQ DI, DX
	JLS  line
	ADDQ R8, SI
	DECQ CX
	JNE  row
	RET
