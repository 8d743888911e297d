//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// Registers: SI, R9, R10 rows 0, 4 and 8 of A; R8 and R11 one and three of its row
// strides; R12 its step; BX B; DI C; DX its row stride; CX the steps left, then the
// rows left. Z0 to Z23 are the 12×32 sums.

#define QUAD(base, z0, z1, z2, z3, z4, z5, z6, z7) \
	VBROADCASTSS (base), Z26         \
	VBROADCASTSS (base)(R8*1), Z27   \
	VBROADCASTSS (base)(R8*2), Z28   \
	VBROADCASTSS (base)(R11*1), Z29  \
	ADDQ         R12, base           \
	VFMADD231PS  Z24, Z26, z0        \
	VFMADD231PS  Z25, Z26, z1        \
	VFMADD231PS  Z24, Z27, z2        \
	VFMADD231PS  Z25, Z27, z3        \
	VFMADD231PS  Z24, Z28, z4        \
	VFMADD231PS  Z25, Z28, z5        \
	VFMADD231PS  Z24, Z29, z6        \
	VFMADD231PS  Z25, Z29, z7

#define STEP(disp) \
	VMOVUPS disp+0(BX), Z24  \
	VMOVUPS disp+64(BX), Z25 \
	QUAD(SI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)         \
	QUAD(R9, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)   \
	QUAD(R10, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)

// HALFQUAD and HALFSTEP do so for the first 16 columns only.
#define HALFQUAD(base, z0, z2, z4, z6) \
	VFMADD231PS.BCST (base), Z24, z0        \
	VFMADD231PS.BCST (base)(R8*1), Z24, z2  \
	VFMADD231PS.BCST (base)(R8*2), Z24, z4  \
	VFMADD231PS.BCST (base)(R11*1), Z24, z6 \
	ADDQ             R12, base

#define HALFSTEP \
	VMOVUPS (BX), Z24             \
	HALFQUAD(SI, Z0, Z2, Z4, Z6)     \
	HALFQUAD(R9, Z8, Z10, Z12, Z14)  \
	HALFQUAD(R10, Z16, Z18, Z20, Z22)

// SET stores a row of sums times alpha; UPDATE adds beta times what was there.
#define SET(z0, z1) \
	VMULPS  Z30, z0, z0      \
	VMULPS  Z30, z1, z1      \
	VMOVUPS z0, K1, 0(DI)    \
	VMOVUPS z1, K2, 64(DI)

#define UPDATE(z0, z1) \
	VMULPS      Z30, z0, z0      \
	VMULPS      Z30, z1, z1      \
	VMOVUPS.Z   0(DI), K1, Z24   \
	VMOVUPS.Z   64(DI), K2, Z25  \
	VFMADD231PS Z24, Z31, z0     \
	VFMADD231PS Z25, Z31, z1     \
	VMOVUPS     z0, K1, 0(DI)    \
	VMOVUPS     z1, K2, 64(DI)

// func gemm12x32AVX512(t *Tile)
TEXT ·gemm12x32AVX512(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	MOVQ Tile_A(AX), SI
	MOVQ Tile_ARow(AX), R8
	MOVQ Tile_AStep(AX), R12
	MOVQ Tile_B(AX), BX
	MOVQ Tile_C(AX), DI
	MOVQ Tile_CRow(AX), DX
	SHLQ $2, R8
	SHLQ $2, R12
	SHLQ $2, DX
	LEAQ (R8)(R8*2), R11
	LEAQ (SI)(R8*4), R9
	LEAQ (R9)(R8*4), R10

	// The masks of the columns.
	MOVQ  Tile_Cols(AX), CX
	MOVQ  $1, R13
	SHLQ  CX, R13
	DECQ  R13
	KMOVW R13, K1
	SHRQ  $16, R13
	KMOVW R13, K2

	// Bring C near while the sums are made.
	MOVQ Tile_Rows(AX), CX
	MOVQ DI, R13

near:
	PREFETCHT0 (R13)
	PREFETCHT0 64(R13)
	ADDQ DX, R13
	DECQ CX
	JNE  near

	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	VPXORD Z18, Z18, Z18
	VPXORD Z19, Z19, Z19
	VPXORD Z20, Z20, Z20
	VPXORD Z21, Z21, Z21
	VPXORD Z22, Z22, Z22
	VPXORD Z23, Z23, Z23

	MOVQ Tile_K(AX), CX
	CMPQ Tile_Cols(AX), $16
	JLE  narrow
	SUBQ $2, CX
	JLT  odd

pair:
	STEP(0)
	STEP(128)
	ADDQ $256, BX
	SUBQ $2, CX
	JGE  pair

odd:
	ADDQ $2, CX
	JEQ  store
	STEP(0)
	JMP  store

narrow:
	TESTQ CX, CX
	JEQ   store

half:
	HALFSTEP
	ADDQ $128, BX
	DECQ CX
	JNE  half

store:
	VBROADCASTSS Tile_Alpha(AX), Z30
	VBROADCASTSS Tile_Beta(AX), Z31
	MOVQ         Tile_Rows(AX), CX
	MOVL         Tile_Beta(AX), R13
	SHLL         $1, R13
	JNE          update
	SET(Z0, Z1)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z2, Z3)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z4, Z5)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z6, Z7)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z8, Z9)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z10, Z11)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z12, Z13)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z14, Z15)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z16, Z17)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z18, Z19)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z20, Z21)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	SET(Z22, Z23)
	JMP  done

update:
	UPDATE(Z0, Z1)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z2, Z3)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z4, Z5)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z6, Z7)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z8, Z9)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z10, Z11)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z12, Z13)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z14, Z15)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z16, Z17)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z18, Z19)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z20, Z21)
	DECQ CX
	JEQ  done
	ADDQ DX, DI
	UPDATE(Z22, Z23)

done:
	VZEROUPPER
	RET
