//go:build !noasm

#include "textflag.h"

DATA counters<>+0(SB)/8, $0
DATA counters<>+8(SB)/8, $4
DATA counters<>+16(SB)/8, $1
DATA counters<>+24(SB)/8, $5
DATA counters<>+32(SB)/8, $2
DATA counters<>+40(SB)/8, $6
DATA counters<>+48(SB)/8, $3
DATA counters<>+56(SB)/8, $7
GLOBL counters<>(SB), RODATA|NOPTR, $64

#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4
#define V5 Z5
#define V6 Z6
#define V7 Z7

#define M0 Z28
#define M1 Z29
#define COUNTERS Z30
#define KEY0 Z8
#define KEY1 Z9
#define KEY2 Z10
#define KEY3 Z11
#define KEY4 Z12
#define KEY5 Z13
#define KEY6 Z14
#define KEY7 Z15
#define KEY8 Z16
#define KEY9 Z17
#define KEY10 Z18
#define KEY11 Z19
#define KEY12 Z20
#define KEY13 Z21
#define KEY14 Z22
#define KEY15 Z23
#define KEY16 Z24
#define KEY17 Z25
#define KEY18 Z26
#define KEY19 Z27

// CONSTANTS has the odd words in K2.
#define CONSTANTS \
	VPBROADCASTQ AX, M0                      \
	VPBROADCASTQ BX, M1                      \
	VPBROADCASTQ counter+24(FP), COUNTERS    \
	VPADDQ       counters<>(SB), COUNTERS, COUNTERS \
	MOVL         $0xAAAA, AX                 \
	KMOVW        AX, K2                      \
	VPBROADCASTD 0(SI), KEY0 \
	VPBROADCASTD 4(SI), KEY1 \
	VPBROADCASTD 8(SI), KEY2 \
	VPBROADCASTD 12(SI), KEY3 \
	VPBROADCASTD 16(SI), KEY4 \
	VPBROADCASTD 20(SI), KEY5 \
	VPBROADCASTD 24(SI), KEY6 \
	VPBROADCASTD 28(SI), KEY7 \
	VPBROADCASTD 32(SI), KEY8 \
	VPBROADCASTD 36(SI), KEY9 \
	VPBROADCASTD 40(SI), KEY10 \
	VPBROADCASTD 44(SI), KEY11 \
	VPBROADCASTD 48(SI), KEY12 \
	VPBROADCASTD 52(SI), KEY13 \
	VPBROADCASTD 56(SI), KEY14 \
	VPBROADCASTD 60(SI), KEY15 \
	VPBROADCASTD 64(SI), KEY16 \
	VPBROADCASTD 68(SI), KEY17 \
	VPBROADCASTD 72(SI), KEY18 \
	VPBROADCASTD 76(SI), KEY19

#define ADDSTEP VPADDQ.BCST step<>(SB), COUNTERS, COUNTERS
DATA step<>+0(SB)/8, $8
GLOBL step<>(SB), RODATA|NOPTR, $8

#define XOR(k, c, d) VPXORD k, c, d
#define XOR3(k, c, d) VPTERNLOGD $0x96, k, c, d
#define PAIR(high, low) VPSHUFD $0xA0, high, K2, low

#define THRESHOLD \
	MOVL         threshold+32(FP), AX \
	VPBROADCASTD AX, Z31

#define DECIDE \
	VPCMPUD $5, Z31, Z4, K1 \
	VPCMPUD $5, Z31, Z5, K3 \
	KMOVW   K1, 0(DI)       \
	KMOVW   K3, 2(DI)       \
	ADDQ    $4, DI

#define STORE \
	VMOVDQU32 Z4, (DI)   \
	VMOVDQU32 Z5, 64(DI) \
	ADDQ      $128, DI

#define ATLEAST ·atLeastAVX512
#define NUMBERS ·numbersAVX512

#include "philox_amd64.h"

// func selectAVX512(dst, x *float32, n int, bits *uint32, first int)
TEXT ·selectAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ bits+24(FP), BX
	MOVQ first+32(FP), CX
	MOVQ CX, AX
	SHRQ $3, AX
	ADDQ AX, BX
	ANDQ $7, CX

select16:
	CMPQ DX, $16
	JLT  select1
	MOVL (BX), AX
	SHRL CX, AX
	KMOVW AX, K1
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $2, BX
	SUBQ $16, DX
	JMP  select16

select1:
	TESTQ DX, DX
	JEQ   select0
	MOVL (BX), AX
	SHRL CX, AX
	KMOVW AX, K1
	MOVQ DX, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K2
	KANDW K1, K2, K1
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS Z0, K2, (DI)

select0:
	VZEROUPPER
	RET
