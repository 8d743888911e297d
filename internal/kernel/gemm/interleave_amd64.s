//go:build !noasm

#include "textflag.h"

// func interleaveAVX512(dst *float32, a, b *uint16, n int)
TEXT ·interleaveAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ n+24(FP), CX

loop:
	VPMOVZXWD (SI), Z0
	VPMOVZXWD (BX), Z1
	VPSLLD    $16, Z1, Z1
	VPORD     Z1, Z0, Z0
	VMOVDQU32 Z0, (DI)
	ADDQ      $32, SI
	ADDQ      $32, BX
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNE       loop
	VZEROUPPER
	RET
