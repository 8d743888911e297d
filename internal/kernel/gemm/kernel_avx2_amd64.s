//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// Registers: SI and R9 rows 0 and 3 of A; R8 its row stride; R12 its step; BX B; R15
// its step; DI C; DX its row stride; CX the steps left. Y0 to Y11 are the 6×16 sums.

#define PAIR(a0, a1, z0, z1, z2, z3) \
	VBROADCASTSS a0, Y14      \
	VBROADCASTSS a1, Y15      \
	VFMADD231PS  Y12, Y14, z0 \
	VFMADD231PS  Y13, Y14, z1 \
	VFMADD231PS  Y12, Y15, z2 \
	VFMADD231PS  Y13, Y15, z3

#define STEP \
	VMOVUPS (BX), Y12   \
	VMOVUPS 32(BX), Y13 \
	ADDQ    R15, BX     \
	PAIR((SI), (SI)(R8*1), Y0, Y1, Y2, Y3)       \
	PAIR((SI)(R8*2), (R9), Y4, Y5, Y6, Y7)       \
	PAIR((R9)(R8*1), (R9)(R8*2), Y8, Y9, Y10, Y11) \
	ADDQ    R12, SI          \
	ADDQ    R12, R9

// SET stores a row of sums times alpha; UPDATE adds beta times what was there.
#define SET(z0, z1) \
	VMULPS  Y14, z0, z0  \
	VMULPS  Y14, z1, z1  \
	VMOVUPS z0, 0(DI)    \
	VMOVUPS z1, 32(DI)   \
	ADDQ    DX, DI

#define UPDATE(z0, z1) \
	VMULPS      Y14, z0, z0     \
	VMULPS      Y14, z1, z1     \
	VFMADD231PS 0(DI), Y15, z0  \
	VFMADD231PS 32(DI), Y15, z1 \
	VMOVUPS     z0, 0(DI)       \
	VMOVUPS     z1, 32(DI)      \
	ADDQ        DX, DI

// func gemm6x16AVX2(t *Tile)
TEXT ·gemm6x16AVX2(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	MOVQ Tile_A(AX), SI
	MOVQ Tile_ARow(AX), R8
	MOVQ Tile_AStep(AX), R12
	MOVQ Tile_B(AX), BX
	MOVQ Tile_BStep(AX), R15
	MOVQ Tile_C(AX), DI
	MOVQ Tile_CRow(AX), DX
	SHLQ $2, R8
	SHLQ $2, R12
	SHLQ $2, R15
	SHLQ $2, DX
	LEAQ (R8)(R8*2), R9
	ADDQ SI, R9

	// Prefetch C while the sums are computed.
	MOVQ $6, CX
	MOVQ DI, R13

near:
	PREFETCHT0 (R13)
	ADDQ DX, R13
	DECQ CX
	JNE  near

	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11

	MOVQ Tile_K(AX), CX
	SUBQ $2, CX
	JLT  odd

pair:
	STEP
	STEP
	SUBQ $2, CX
	JGE  pair

odd:
	ADDQ $2, CX
	JEQ  store
	STEP

store:
	VBROADCASTSS Tile_Alpha(AX), Y14
	VBROADCASTSS Tile_Beta(AX), Y15
	MOVL         Tile_Beta(AX), R13
	SHLL         $1, R13
	JNE          update
	SET(Y0, Y1)
	SET(Y2, Y3)
	SET(Y4, Y5)
	SET(Y6, Y7)
	SET(Y8, Y9)
	SET(Y10, Y11)
	VZEROUPPER
	RET

update:
	UPDATE(Y0, Y1)
	UPDATE(Y2, Y3)
	UPDATE(Y4, Y5)
	UPDATE(Y6, Y7)
	UPDATE(Y8, Y9)
	UPDATE(Y10, Y11)
	VZEROUPPER
	RET
