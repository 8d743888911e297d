//go:build !noasm

#include "textflag.h"

#define BROADCAST(value, to) \
	MOVL         value, AX \
	VPBROADCASTD AX, to

// AHEAD is how far ahead of the elements the encoder prefetches.
#define AHEAD 2048

// Registers: DI destination, SI source, DX scales, CX elements left, R8 the tables; AX the table of
// a block.

// func encodeE2M1AVX512(dst *byte, x *float32, scales *byte, n int, limits *[128]E2M1Limits)
TEXT ·encodeE2M1AVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ limits+32(FP), R8
	BROADCAST($0x7fffffff, Z16)
	BROADCAST($2, Z17)
	BROADCAST($6, Z18)
	BROADCAST($1, Z19)
	BROADCAST($8, Z20)

// The index of a limit becomes k+2, then k+1 for the k of four, and ends as k or k+1 for the k of
// two.
encodeLoop:
	PREFETCHT0   AHEAD(SI)
	MOVBLZX      (DX), AX
	SHLL         $5, AX
	ADDQ         R8, AX
	VMOVUPS      (SI), Z0
	VMOVUPS      (AX), Y4
	VPANDD       Z16, Z0, Z1
	VCMPPS.BCST  $0x15, 16(AX), Z1, K1
	VCMPPS       $7, Z0, Z0, K4
	VMOVDQA32    Z17, Z7
	VMOVDQA32    Z18, K1, Z7
	VPERMPS      Z4, Z7, Z8
	VCMPPS       $0x15, Z8, Z1, K2
	VPSUBD       Z19, Z7, Z7
	VPADDD       Z17, Z7, K2, Z7
	VPERMPS      Z4, Z7, Z8
	VCMPPS       $1, Z8, Z1, K3
	VPSUBD       Z19, Z7, K3, Z7
	VPSRLD.Z     $28, Z0, K4, Z9
	VPTERNLOGD   $0xf8, Z20, Z9, Z7
	VPSRLQ       $28, Z7, Z8
	VPORQ        Z8, Z7, Z7
	VPMOVQB      Z7, (DI)
	INCQ         DX
	ADDQ         $64, SI
	ADDQ         $8, DI
	SUBQ         $16, CX
	JNZ          encodeLoop
	VZEROUPPER
	RET

// func decodeE2M1AVX512(dst *float32, src, scales *byte, n int, values *[256]E2M1Values)
TEXT ·decodeE2M1AVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ values+32(FP), R8

decodeLoop:
	MOVBLZX   (DX), AX
	SHLL      $6, AX
	VPMOVZXBQ (SI), Z0
	VPSLLQ    $28, Z0, Z1
	VPORQ     Z1, Z0, Z0
	VPERMPS   (R8)(AX*1), Z0, Z1
	VMOVUPS   Z1, (DI)
	INCQ      DX
	ADDQ      $8, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       decodeLoop
	VZEROUPPER
	RET
