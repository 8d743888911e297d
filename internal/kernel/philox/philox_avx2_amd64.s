//go:build !noasm

#include "textflag.h"

DATA counters<>+0(SB)/8, $0
DATA counters<>+8(SB)/8, $2
DATA counters<>+16(SB)/8, $1
DATA counters<>+24(SB)/8, $3
GLOBL counters<>(SB), RODATA|NOPTR, $32

DATA bit8<>+0(SB)/4, $1
DATA bit8<>+4(SB)/4, $2
DATA bit8<>+8(SB)/4, $4
DATA bit8<>+12(SB)/4, $8
DATA bit8<>+16(SB)/4, $16
DATA bit8<>+20(SB)/4, $32
DATA bit8<>+24(SB)/4, $64
DATA bit8<>+28(SB)/4, $128
GLOBL bit8<>(SB), RODATA|NOPTR, $32

#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define V7 Y7

#define M0 Y8
#define M1 Y9
#define COUNTERS Y10
#define KEY0 0(SI)
#define KEY1 4(SI)
#define KEY2 8(SI)
#define KEY3 12(SI)
#define KEY4 16(SI)
#define KEY5 20(SI)
#define KEY6 24(SI)
#define KEY7 28(SI)
#define KEY8 32(SI)
#define KEY9 36(SI)
#define KEY10 40(SI)
#define KEY11 44(SI)
#define KEY12 48(SI)
#define KEY13 52(SI)
#define KEY14 56(SI)
#define KEY15 60(SI)
#define KEY16 64(SI)
#define KEY17 68(SI)
#define KEY18 72(SI)
#define KEY19 76(SI)

// CONSTANTS has the step in Y15. A group is half of 32 words.
#define CONSTANTS \
	ADDQ         CX, CX                   \
	MOVQ         AX, X8                   \
	VPBROADCASTQ X8, M0                   \
	MOVQ         BX, X9                   \
	VPBROADCASTQ X9, M1                   \
	VPBROADCASTQ counter+24(FP), COUNTERS \
	VPADDQ       counters<>(SB), COUNTERS, COUNTERS \
	VPBROADCASTQ step<>(SB), Y15

#define ADDSTEP VPADDQ Y15, COUNTERS, COUNTERS
DATA step<>+0(SB)/8, $4
GLOBL step<>(SB), RODATA|NOPTR, $8

#define XOR(k, c, d) \
	VPBROADCASTD k, Y12   \
	VPXOR        Y12, c, d
#define XOR3(k, c, d) \
	VPBROADCASTD k, Y12     \
	VPXOR        Y12, c, Y12 \
	VPXOR        Y12, d, d
#define PAIR(high, low) \
	VPSLLQ   $32, high, high     \
	VPBLENDD $0xAA, high, low, low

#define THRESHOLD \
	MOVL         threshold+32(FP), AX \
	VMOVD        AX, X11              \
	VPBROADCASTD X11, Y11

#define DECIDE \
	VPMAXUD   Y11, Y4, Y12 \
	VPMAXUD   Y11, Y5, Y13 \
	VPCMPEQD  Y12, Y4, Y12 \
	VPCMPEQD  Y13, Y5, Y13 \
	VMOVMSKPS Y12, AX      \
	VMOVMSKPS Y13, BX      \
	SHLL      $8, BX       \
	ORL       BX, AX       \
	MOVW      AX, (DI)     \
	ADDQ      $2, DI

#define STORE \
	VMOVDQU Y4, (DI)   \
	VMOVDQU Y5, 32(DI) \
	ADDQ    $64, DI

#define ATLEAST ·atLeastAVX2
#define NUMBERS ·numbersAVX2

#include "philox_amd64.h"

// func selectAVX2(dst, x *float32, n int, bits *uint32, first int)
TEXT ·selectAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ bits+24(FP), BX
	MOVQ first+32(FP), CX
	MOVQ CX, AX
	SHRQ $3, AX
	ADDQ AX, BX
	ANDQ $7, CX
	VMOVDQU bit8<>(SB), Y2

select8:
	MOVWLZX (BX), AX
	SHRL CX, AX
	VMOVD AX, X0
	VPBROADCASTB X0, Y0
	VPAND Y2, Y0, Y0
	VPCMPEQD Y2, Y0, Y0
	VANDPS (SI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	INCQ BX
	SUBQ $8, DX
	JNE  select8
	VZEROUPPER
	RET
