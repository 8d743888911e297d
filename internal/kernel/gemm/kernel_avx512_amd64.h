// What the kernels of AVX-512 have in common. A file that includes this one defines how a column of A
// is multiplied.
//
// Tiles are 8×48 or 12×32 sums in Z0 to Z23, three or two registers a row.
//
// Registers: SI, R9, R10 rows 0, 4 and 8 of A; R8 and R11 one and three of its row
// distances; R12 the distance of its steps; BX B; R15 the distance of its rows; DI C;
// DX the distance of its rows; CX the steps left, then the rows left; R13 what is
// fetched ahead; K1 to K3 the columns of a row of C.
//
// A loop takes a row of B to Z24 to Z26 and multiplies it by one element after the
// other of a column of A, which is in a register or, where a row is one register
// wide, in memory. Rows of A that are dense have their steps side by side, else the
// rows of one step are.

// SET stores a row of sums times alpha; UPDATE adds beta times what was there.
#define SET3(z0, z1, z2) \
	VMULPS  Z30, z0, z0 \
	VMULPS  Z30, z1, z1 \
	VMULPS  Z30, z2, z2 \
	VMOVUPS z0, K1, 0(DI) \
	VMOVUPS z1, K2, 64(DI) \
	VMOVUPS z2, K3, 128(DI)

#define UPDATE3(z0, z1, z2) \
	VMULPS      Z30, z0, z0 \
	VMULPS      Z30, z1, z1 \
	VMULPS      Z30, z2, z2 \
	VMOVUPS.Z   0(DI), K1, Z24 \
	VMOVUPS.Z   64(DI), K2, Z25 \
	VMOVUPS.Z   128(DI), K3, Z26 \
	VFMADD231PS Z24, Z31, z0 \
	VFMADD231PS Z25, Z31, z1 \
	VFMADD231PS Z26, Z31, z2 \
	VMOVUPS     z0, K1, 0(DI) \
	VMOVUPS     z1, K2, 64(DI) \
	VMOVUPS     z2, K3, 128(DI)

#define SET2(z0, z1) \
	VMULPS  Z30, z0, z0 \
	VMULPS  Z30, z1, z1 \
	VMOVUPS z0, K1, 0(DI) \
	VMOVUPS z1, K2, 64(DI)

#define UPDATE2(z0, z1) \
	VMULPS      Z30, z0, z0 \
	VMULPS      Z30, z1, z1 \
	VMOVUPS.Z   0(DI), K1, Z24 \
	VMOVUPS.Z   64(DI), K2, Z25 \
	VFMADD231PS Z24, Z31, z0 \
	VFMADD231PS Z25, Z31, z1 \
	VMOVUPS     z0, K1, 0(DI) \
	VMOVUPS     z1, K2, 64(DI)

// CLEAR begins all sums.
#define CLEAR \
	VPXORD Z0, Z0, Z0 \
	VPXORD Z1, Z1, Z1 \
	VPXORD Z2, Z2, Z2 \
	VPXORD Z3, Z3, Z3 \
	VPXORD Z4, Z4, Z4 \
	VPXORD Z5, Z5, Z5 \
	VPXORD Z6, Z6, Z6 \
	VPXORD Z7, Z7, Z7 \
	VPXORD Z8, Z8, Z8 \
	VPXORD Z9, Z9, Z9 \
	VPXORD Z10, Z10, Z10 \
	VPXORD Z11, Z11, Z11 \
	VPXORD Z12, Z12, Z12 \
	VPXORD Z13, Z13, Z13 \
	VPXORD Z14, Z14, Z14 \
	VPXORD Z15, Z15, Z15 \
	VPXORD Z16, Z16, Z16 \
	VPXORD Z17, Z17, Z17 \
	VPXORD Z18, Z18, Z18 \
	VPXORD Z19, Z19, Z19 \
	VPXORD Z20, Z20, Z20 \
	VPXORD Z21, Z21, Z21 \
	VPXORD Z22, Z22, Z22 \
	VPXORD Z23, Z23, Z23

// NEXT goes on to the next row of C, if there is one.
#define NEXT \
	DECQ CX     \
	JEQ  done   \
	ADDQ DX, DI

// ROWS does something to every row of C that there is, with its sums.
#define ROWS3(op) \
	op(Z0, Z1, Z2) \
	NEXT \
	op(Z3, Z4, Z5) \
	NEXT \
	op(Z6, Z7, Z8) \
	NEXT \
	op(Z9, Z10, Z11) \
	NEXT \
	op(Z12, Z13, Z14) \
	NEXT \
	op(Z15, Z16, Z17) \
	NEXT \
	op(Z18, Z19, Z20) \
	NEXT \
	op(Z21, Z22, Z23)

#define ROWS2(op) \
	op(Z0, Z1) \
	NEXT \
	op(Z2, Z3) \
	NEXT \
	op(Z4, Z5) \
	NEXT \
	op(Z6, Z7) \
	NEXT \
	op(Z8, Z9) \
	NEXT \
	op(Z10, Z11) \
	NEXT \
	op(Z12, Z13) \
	NEXT \
	op(Z14, Z15) \
	NEXT \
	op(Z16, Z17) \
	NEXT \
	op(Z18, Z19) \
	NEXT \
	op(Z20, Z21) \
	NEXT \
	op(Z22, Z23)

// LOADn loads n elements of a row of B and goes on to the next one.
#define LOAD48 \
	VMOVUPS (BX), Z24    \
	VMOVUPS 64(BX), Z25  \
	VMOVUPS 128(BX), Z26 \
	ADDQ    R15, BX

#define LOAD32 \
	VMOVUPS (BX), Z24   \
	VMOVUPS 64(BX), Z25 \
	ADDQ    R15, BX

#define LOAD16 \
	VMOVUPS (BX), Z24 \
	ADDQ    R15, BX

// DENSEm passes a column of A to COLUMNmBYn where the rows of A are dense, and ADVANCEm goes on by
// bytes in them.
#define DENSE8(column, at) \
	column(at(SI), at(SI)(R8*1), at(SI)(R8*2), at(SI)(R11*1), at(R9), at(R9)(R8*1), at(R9)(R8*2), at(R9)(R11*1))
#define DENSE12(column, at) \
	column(at(SI), at(SI)(R8*1), at(SI)(R8*2), at(SI)(R11*1), at(R9), at(R9)(R8*1), at(R9)(R8*2), at(R9)(R11*1), at(R10), at(R10)(R8*1), at(R10)(R8*2), at(R10)(R11*1))

#define ADVANCE8(bytes) \
	ADDQ $bytes, SI \
	ADDQ $bytes, R9
#define ADVANCE12(bytes) \
	ADDQ $bytes, SI  \
	ADDQ $bytes, R9  \
	ADDQ $bytes, R10

// STEPm does so where the columns of A are dense.
#define STEP8(column) \
	column(0(SI), 4(SI), 8(SI), 12(SI), 16(SI), 20(SI), 24(SI), 28(SI))
#define STEP12(column) \
	column(0(SI), 4(SI), 8(SI), 12(SI), 16(SI), 20(SI), 24(SI), 28(SI), 32(SI), 36(SI), 40(SI), 44(SI))

// AHEAD prefetches for four or for two steps of the loops, NOTHING where it does not pay.
#define AHEAD4 \
	PREFETCHT1 (R13)     \
	PREFETCHT1 64(R13)   \
	ADDQ       $128, R13
#define AHEAD2 \
	PREFETCHT1 (R13)    \
	ADDQ       $64, R13
#define NOTHING

// LOOPS adds up CX steps and goes on to store. The last arguments are the labels.
#define LOOPS(load, column, dense, advance, stepOf, ahead4, ahead2, rows, rest, row, steps, pair, step) \
	CMPQ R12, $4      \
	JNE  steps        \
	SUBQ $4, CX       \
	JLT  rest         \
rows:                 \
	ahead4            \
	load              \
	dense(column, 0)  \
	load              \
	dense(column, 4)  \
	load              \
	dense(column, 8)  \
	load              \
	dense(column, 12) \
	advance(16)       \
	SUBQ $4, CX       \
	JGE  rows         \
rest:                 \
	ADDQ $4, CX       \
	JEQ  store        \
row:                  \
	load              \
	dense(column, 0)  \
	advance(4)        \
	DECQ CX           \
	JNE  row          \
	JMP  store        \
steps:                \
	SUBQ $2, CX       \
	JLT  step         \
pair:                 \
	ahead2            \
	load              \
	stepOf(column)    \
	ADDQ R12, SI      \
	load              \
	stepOf(column)    \
	ADDQ R12, SI      \
	SUBQ $2, CX       \
	JGE  pair         \
step:                 \
	ADDQ $2, CX       \
	JEQ  store        \
	load              \
	stepOf(column)    \
	JMP  store

// ARGUMENTS takes the operands of a tile and their distances in bytes.
#define ARGUMENTS \
	MOVQ t+0(FP), AX         \
	MOVQ Tile_A(AX), SI      \
	MOVQ Tile_ARow(AX), R8   \
	MOVQ Tile_AStep(AX), R12 \
	MOVQ Tile_B(AX), BX      \
	MOVQ Tile_BStep(AX), R15 \
	MOVQ Tile_C(AX), DI      \
	MOVQ Tile_CRow(AX), DX   \
	SHLQ $2, R8              \
	SHLQ $2, R12             \
	SHLQ $2, R15             \
	SHLQ $2, DX              \
	LEAQ (R8)(R8*2), R11     \
	LEAQ (SI)(R8*4), R9

// STORE computes C from the sums.
#define STORE(rows, set, update) \
	VBROADCASTSS Tile_Alpha(AX), Z30 \
	VBROADCASTSS Tile_Beta(AX), Z31  \
	MOVQ         Tile_Rows(AX), CX   \
	MOVL         Tile_Beta(AX), R13  \
	SHLL         $1, R13             \
	JNE          more                \
	rows(set)                        \
	JMP          done                \
more:                                \
	rows(update)                     \
done:                                \
	VZEROUPPER                       \
	RET

// BEGIN8 sets the masks of the columns, prefetches C while the sums are computed, and clears those.
// It goes on to store without steps, to wide16 or wide32 for narrow tiles. R13 becomes what is
// fetched ahead; where there is nothing, B, which is at hand.
#define BEGIN8 \
	MOVQ  Tile_Cols(AX), CX \
	MOVQ  $1, R13 \
	SHLQ  CX, R13 \
	DECQ  R13 \
	KMOVW R13, K1 \
	SHRQ  $16, R13 \
	KMOVW R13, K2 \
	SHRQ  $16, R13 \
	KMOVW R13, K3 \
	MOVQ Tile_Rows(AX), CX \
	MOVQ DI, R13 \
near: \
	PREFETCHT0 (R13) \
	PREFETCHT0 64(R13) \
	PREFETCHT0 128(R13) \
	ADDQ DX, R13 \
	DECQ CX \
	JNE  near \
	CLEAR \
	MOVQ  Tile_K(AX), CX \
	TESTQ CX, CX \
	JEQ   store \
	CMPQ  Tile_Cols(AX), $16 \
	JLE   wide16 \
	CMPQ  Tile_Cols(AX), $32 \
	JLE   wide32 \
	MOVQ    Tile_Ahead(AX), R13 \
	TESTQ   R13, R13 \
	CMOVQEQ BX, R13
