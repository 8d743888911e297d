//go:build !noasm && !race

#include "textflag.h"

// A round of Philox4x32 takes four words c0 to c3 under the keys k0 and k1 to
//
//	hi(M1·c2)^c1^k0, lo(M1·c2), hi(M0·c0)^c3^k1, lo(M0·c0)
//
// Each word lies in the low half of a lane of 64 bits, as VPMULUDQ wants it, one lane for
// each counter; the high halves hold what is left of products. The counters of lanes
// 2i and 2i+1 are those of lane i and of lane i of the upper half, so that the words of
// all counters are in order when pairs of lanes are taken apart at the end.

DATA ·lanes8+0(SB)/8, $0
DATA ·lanes8+8(SB)/8, $4
DATA ·lanes8+16(SB)/8, $1
DATA ·lanes8+24(SB)/8, $5
DATA ·lanes8+32(SB)/8, $2
DATA ·lanes8+40(SB)/8, $6
DATA ·lanes8+48(SB)/8, $3
DATA ·lanes8+56(SB)/8, $7
GLOBL ·lanes8(SB), RODATA|NOPTR, $64

DATA ·lanes4+0(SB)/8, $0
DATA ·lanes4+8(SB)/8, $2
DATA ·lanes4+16(SB)/8, $1
DATA ·lanes4+24(SB)/8, $3
GLOBL ·lanes4(SB), RODATA|NOPTR, $32

DATA ·step+0(SB)/8, $8
DATA ·step+8(SB)/8, $4
GLOBL ·step(SB), RODATA|NOPTR, $16

DATA ·bit8+0(SB)/4, $1
DATA ·bit8+4(SB)/4, $2
DATA ·bit8+8(SB)/4, $4
DATA ·bit8+12(SB)/4, $8
DATA ·bit8+16(SB)/4, $16
DATA ·bit8+20(SB)/4, $32
DATA ·bit8+24(SB)/4, $64
DATA ·bit8+28(SB)/4, $128
GLOBL ·bit8(SB), RODATA|NOPTR, $32

// The multipliers M0 and M1.
#define MULTIPLIER0 $0xD2511F53
#define MULTIPLIER1 $0xCD9E8D57

// ROUND512 takes the words c to d. M0 is in Z28, M1 in Z29.
#define ROUND512(c0, c1, c2, c3, k0, k1, d0, d1, d2, d3) \
	VPMULUDQ   Z28, c0, d3       \
	VPMULUDQ   Z29, c2, d1       \
	VPSHUFD    $0xF5, d1, d0     \
	VPSRLQ     $32, d3, d2       \
	VPTERNLOGD $0x96, k0, c1, d0 \
	VPTERNLOGD $0x96, k1, c3, d2

// func atLeastAVX512(dst *uint32, words int, keys *keySchedule, counter uint64, threshold uint32)
//
// Z0 to Z7 words, Z8 to Z27 keys, Z30 counters, Z31 threshold.
TEXT ·atLeastAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ words+8(FP), CX
	MOVQ keys+16(FP), SI
	MOVL MULTIPLIER0, AX
	VPBROADCASTQ AX, Z28
	MOVL MULTIPLIER1, AX
	VPBROADCASTQ AX, Z29
	VPBROADCASTQ counter+24(FP), Z30
	VPADDQ ·lanes8(SB), Z30, Z30
	MOVL threshold+32(FP), AX
	VPBROADCASTD AX, Z31
	MOVL  $0xAAAA, AX
	KMOVW AX, K2

	VPBROADCASTD 0(SI), Z8
	VPBROADCASTD 4(SI), Z9
	VPBROADCASTD 8(SI), Z10
	VPBROADCASTD 12(SI), Z11
	VPBROADCASTD 16(SI), Z12
	VPBROADCASTD 20(SI), Z13
	VPBROADCASTD 24(SI), Z14
	VPBROADCASTD 28(SI), Z15
	VPBROADCASTD 32(SI), Z16
	VPBROADCASTD 36(SI), Z17
	VPBROADCASTD 40(SI), Z18
	VPBROADCASTD 44(SI), Z19
	VPBROADCASTD 48(SI), Z20
	VPBROADCASTD 52(SI), Z21
	VPBROADCASTD 56(SI), Z22
	VPBROADCASTD 60(SI), Z23
	VPBROADCASTD 64(SI), Z24
	VPBROADCASTD 68(SI), Z25
	VPBROADCASTD 72(SI), Z26
	VPBROADCASTD 76(SI), Z27

group512:
	// The first round, with c2 = c3 = 0.
	VPMULUDQ Z28, Z30, Z7
	VPSRLQ   $32, Z30, Z4
	VPXORD   Z8, Z4, Z4
	VPXORD   Z5, Z5, Z5
	VPSRLQ   $32, Z7, Z6
	VPXORD   Z9, Z6, Z6
	VPADDQ.BCST ·step+0(SB), Z30, Z30

	ROUND512(Z4, Z5, Z6, Z7, Z10, Z11, Z0, Z1, Z2, Z3)
	ROUND512(Z0, Z1, Z2, Z3, Z12, Z13, Z4, Z5, Z6, Z7)
	ROUND512(Z4, Z5, Z6, Z7, Z14, Z15, Z0, Z1, Z2, Z3)
	ROUND512(Z0, Z1, Z2, Z3, Z16, Z17, Z4, Z5, Z6, Z7)
	ROUND512(Z4, Z5, Z6, Z7, Z18, Z19, Z0, Z1, Z2, Z3)
	ROUND512(Z0, Z1, Z2, Z3, Z20, Z21, Z4, Z5, Z6, Z7)
	ROUND512(Z4, Z5, Z6, Z7, Z22, Z23, Z0, Z1, Z2, Z3)
	ROUND512(Z0, Z1, Z2, Z3, Z24, Z25, Z4, Z5, Z6, Z7)
	ROUND512(Z4, Z5, Z6, Z7, Z26, Z27, Z0, Z1, Z2, Z3)

	VPSHUFD    $0xA0, Z1, K2, Z0
	VPSHUFD    $0xA0, Z3, K2, Z2
	VPUNPCKLQDQ Z2, Z0, Z4
	VPUNPCKHQDQ Z2, Z0, Z5
	VPCMPUD $5, Z31, Z4, K1
	VPCMPUD $5, Z31, Z5, K3
	KMOVW K1, 0(DI)
	KMOVW K3, 2(DI)
	ADDQ  $4, DI
	DECQ  CX
	JNE   group512
	VZEROUPPER
	RET

// ROUND256 is ROUND512 for half as many counters. M0 is in Y8, M1 in Y9, keys at 0(SI);
// Y12 and Y13 are free.
#define ROUND256(c0, c1, c2, c3, key, d0, d1, d2, d3) \
	VPBROADCASTD key(SI), Y12   \
	VPBROADCASTD key+4(SI), Y13 \
	VPMULUDQ     Y8, c0, d3     \
	VPMULUDQ     Y9, c2, d1     \
	VPXOR        Y12, c1, Y12   \
	VPXOR        Y13, c3, Y13   \
	VPSHUFD      $0xF5, d1, d0  \
	VPSRLQ       $32, d3, d2    \
	VPXOR        Y12, d0, d0    \
	VPXOR        Y13, d2, d2

// func atLeastAVX2(dst *uint32, words int, keys *keySchedule, counter uint64, threshold uint32)
//
// Y0 to Y7 words, Y10 counters, Y11 threshold, Y15 their step.
TEXT ·atLeastAVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ words+8(FP), CX
	MOVQ keys+16(FP), SI
	ADDQ CX, CX
	MOVL MULTIPLIER0, AX
	MOVQ AX, X8
	VPBROADCASTQ X8, Y8
	MOVL MULTIPLIER1, AX
	MOVQ AX, X9
	VPBROADCASTQ X9, Y9
	VPBROADCASTQ counter+24(FP), Y10
	VPADDQ ·lanes4(SB), Y10, Y10
	MOVL threshold+32(FP), AX
	VMOVD AX, X11
	VPBROADCASTD X11, Y11
	VPBROADCASTQ ·step+8(SB), Y15

group256:
	VPBROADCASTD 0(SI), Y12
	VPBROADCASTD 4(SI), Y13
	VPMULUDQ Y8, Y10, Y7
	VPSRLQ   $32, Y10, Y4
	VPXOR    Y12, Y4, Y4
	VPXOR    Y5, Y5, Y5
	VPSRLQ   $32, Y7, Y6
	VPXOR    Y13, Y6, Y6
	VPADDQ   Y15, Y10, Y10

	ROUND256(Y4, Y5, Y6, Y7, 8, Y0, Y1, Y2, Y3)
	ROUND256(Y0, Y1, Y2, Y3, 16, Y4, Y5, Y6, Y7)
	ROUND256(Y4, Y5, Y6, Y7, 24, Y0, Y1, Y2, Y3)
	ROUND256(Y0, Y1, Y2, Y3, 32, Y4, Y5, Y6, Y7)
	ROUND256(Y4, Y5, Y6, Y7, 40, Y0, Y1, Y2, Y3)
	ROUND256(Y0, Y1, Y2, Y3, 48, Y4, Y5, Y6, Y7)
	ROUND256(Y4, Y5, Y6, Y7, 56, Y0, Y1, Y2, Y3)
	ROUND256(Y0, Y1, Y2, Y3, 64, Y4, Y5, Y6, Y7)
	ROUND256(Y4, Y5, Y6, Y7, 72, Y0, Y1, Y2, Y3)

	VPSLLQ   $32, Y1, Y1
	VPSLLQ   $32, Y3, Y3
	VPBLENDD $0xAA, Y1, Y0, Y0
	VPBLENDD $0xAA, Y3, Y2, Y2
	VPUNPCKLQDQ Y2, Y0, Y4
	VPUNPCKHQDQ Y2, Y0, Y5
	VPMAXUD  Y11, Y4, Y12
	VPMAXUD  Y11, Y5, Y13
	VPCMPEQD Y12, Y4, Y12
	VPCMPEQD Y13, Y5, Y13
	VMOVMSKPS Y12, AX
	VMOVMSKPS Y13, BX
	SHLL $8, BX
	ORL  BX, AX
	MOVW AX, (DI)
	ADDQ $2, DI
	DECQ CX
	JNE  group256
	VZEROUPPER
	RET

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
	VMOVDQU ·bit8(SB), Y2

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
