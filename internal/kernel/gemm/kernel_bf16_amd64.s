//go:build !noasm

#include "go_asm.h"
#include "textflag.h"
#include "kernel_avx512_amd64.h"

// Elements are pairs of bfloat16: a step multiplies two numbers of a row of A with two of a column
// of B and adds both products to a sum.

// DP is VDPBF16PS b, a, d for Z registers, given by their numbers, which the assembler does not
// know.
#define DP(b, a, d) \
	BYTE $0x62 \
	BYTE $(0x02 | ((((d>>3)&1)^1)<<7) | ((((b>>4)&1)^1)<<6) | ((((b>>3)&1)^1)<<5) | ((((d>>4)&1)^1)<<4)) \
	BYTE $(0x06 | (((a&15)^15)<<3)) \
	BYTE $(0x40 | ((((a>>4)&1)^1)<<3)) \
	BYTE $0x52 \
	BYTE $(0xc0 | ((d&7)<<3) | (b&7))

// DPn adds an element of A, which it takes to register t of number i, times n registers of B.
#define DP3(a, t, i, z0, z1, z2) \
	VBROADCASTSS a, t \
	DP(24, i, z0) \
	DP(25, i, z1) \
	DP(26, i, z2)

#define DP2(a, t, i, z0, z1) \
	VBROADCASTSS a, t \
	DP(24, i, z0) \
	DP(25, i, z1)

#define DP1(a, t, i, z0) \
	VBROADCASTSS a, t \
	DP(24, i, z0)

// PAIRS8BYn adds a column of A times a row of B to 8×n sums.
#define PAIRS8BY48(a0, a1, a2, a3, a4, a5, a6, a7) \
	DP3(a0, Z27, 27, 0, 1, 2) \
	DP3(a1, Z28, 28, 3, 4, 5) \
	DP3(a2, Z29, 29, 6, 7, 8) \
	DP3(a3, Z30, 30, 9, 10, 11) \
	DP3(a4, Z31, 31, 12, 13, 14) \
	DP3(a5, Z27, 27, 15, 16, 17) \
	DP3(a6, Z28, 28, 18, 19, 20) \
	DP3(a7, Z29, 29, 21, 22, 23)

#define PAIRS8BY32(a0, a1, a2, a3, a4, a5, a6, a7) \
	DP2(a0, Z27, 27, 0, 1) \
	DP2(a1, Z28, 28, 3, 4) \
	DP2(a2, Z29, 29, 6, 7) \
	DP2(a3, Z30, 30, 9, 10) \
	DP2(a4, Z31, 31, 12, 13) \
	DP2(a5, Z27, 27, 15, 16) \
	DP2(a6, Z28, 28, 18, 19) \
	DP2(a7, Z29, 29, 21, 22)

#define PAIRS8BY16(a0, a1, a2, a3, a4, a5, a6, a7) \
	DP1(a0, Z27, 27, 0) \
	DP1(a1, Z28, 28, 3) \
	DP1(a2, Z29, 29, 6) \
	DP1(a3, Z30, 30, 9) \
	DP1(a4, Z31, 31, 12) \
	DP1(a5, Z27, 27, 15) \
	DP1(a6, Z28, 28, 18) \
	DP1(a7, Z29, 29, 21)

// func pairs8x48AVX512(t *Tile)
TEXT ·pairs8x48AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS
	BEGIN8
	LOOPS(LOAD48, PAIRS8BY48, DENSE8, ADVANCE8, STEP8, AHEAD4, AHEAD2, rows48, rest48, row48, steps48, pair48, step48)

wide32:
	LOOPS(LOAD32, PAIRS8BY32, DENSE8, ADVANCE8, STEP8, NOTHING, NOTHING, rows32, rest32, row32, steps32, pair32, step32)

wide16:
	LOOPS(LOAD16, PAIRS8BY16, DENSE8, ADVANCE8, STEP8, NOTHING, NOTHING, rows16, rest16, row16, steps16, pair16, step16)

store:
	STORE(ROWS3, SET3, UPDATE3)
