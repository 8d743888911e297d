//go:build !noasm

#include "textflag.h"

// COLUMN raises the elements of to, and COLUMNY those of a shorter vector, to the magnitudes of
// those in memory. Of a number and a NaN, VMAXPS returns its last source, the first one here.
#define COLUMN(mem, to, t) \
	VPANDD mem, Z16, t \
	VMAXPS to, t, to

#define COLUMNY(mem, to, t) \
	VPAND  mem, Y15, t \
	VMAXPS to, t, to

// Registers: DI destination, SI first row, DX columns left, R8 bytes from a row to the next, R9 rows;
// BX a row, CX rows left. Each load of the loop has the same distance from row to row, from which
// the processor foresees the next rows.

// func amaxColumnsAVX512(dst, x *float32, cols, pitch, rows int)
TEXT ·amaxColumnsAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ cols+16(FP), DX
	MOVQ pitch+24(FP), R8
	MOVQ rows+32(FP), R9
	SHLQ $2, R8
	MOVL         $0x7fffffff, AX
	VPBROADCASTD AX, Z16

columns:
	VXORPS Z0, Z0, Z0
	VXORPS Z1, Z1, Z1
	VXORPS Z2, Z2, Z2
	VXORPS Z3, Z3, Z3
	VXORPS Z4, Z4, Z4
	VXORPS Z5, Z5, Z5
	VXORPS Z6, Z6, Z6
	VXORPS Z7, Z7, Z7
	VXORPS Z8, Z8, Z8
	VXORPS Z9, Z9, Z9
	VXORPS Z10, Z10, Z10
	VXORPS Z11, Z11, Z11
	VXORPS Z12, Z12, Z12
	VXORPS Z13, Z13, Z13
	VXORPS Z14, Z14, Z14
	VXORPS Z15, Z15, Z15
	MOVQ   SI, BX
	MOVQ   R9, CX

row:
	COLUMN((BX), Z0, Z17)
	COLUMN(64(BX), Z1, Z18)
	COLUMN(128(BX), Z2, Z19)
	COLUMN(192(BX), Z3, Z20)
	COLUMN(256(BX), Z4, Z17)
	COLUMN(320(BX), Z5, Z18)
	COLUMN(384(BX), Z6, Z19)
	COLUMN(448(BX), Z7, Z20)
	COLUMN(512(BX), Z8, Z17)
	COLUMN(576(BX), Z9, Z18)
	COLUMN(640(BX), Z10, Z19)
	COLUMN(704(BX), Z11, Z20)
	COLUMN(768(BX), Z12, Z17)
	COLUMN(832(BX), Z13, Z18)
	COLUMN(896(BX), Z14, Z19)
	COLUMN(960(BX), Z15, Z20)
	ADDQ   R8, BX
	DECQ   CX
	JNZ    row
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VMOVUPS Z8, 512(DI)
	VMOVUPS Z9, 576(DI)
	VMOVUPS Z10, 640(DI)
	VMOVUPS Z11, 704(DI)
	VMOVUPS Z12, 768(DI)
	VMOVUPS Z13, 832(DI)
	VMOVUPS Z14, 896(DI)
	VMOVUPS Z15, 960(DI)
	ADDQ   $1024, SI
	ADDQ   $1024, DI
	SUBQ   $256, DX
	JNZ    columns
	VZEROUPPER
	RET

// func amaxColumnsAVX2(dst, x *float32, cols, pitch, rows int)
TEXT ·amaxColumnsAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ cols+16(FP), DX
	MOVQ pitch+24(FP), R8
	MOVQ rows+32(FP), R9
	SHLQ $2, R8
	VPCMPEQD Y15, Y15, Y15
	VPSRLD   $1, Y15, Y15

columns:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	MOVQ   SI, BX
	MOVQ   R9, CX

row:
	COLUMNY((BX), Y0, Y8)
	COLUMNY(32(BX), Y1, Y9)
	COLUMNY(64(BX), Y2, Y10)
	COLUMNY(96(BX), Y3, Y11)
	COLUMNY(128(BX), Y4, Y8)
	COLUMNY(160(BX), Y5, Y9)
	COLUMNY(192(BX), Y6, Y10)
	COLUMNY(224(BX), Y7, Y11)
	ADDQ   R8, BX
	DECQ   CX
	JNZ    row
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ   $256, SI
	ADDQ   $256, DI
	SUBQ   $64, DX
	JNZ    columns
	VZEROUPPER
	RET

// COLUMNW raises the words of to to the magnitudes of those in memory.
#define COLUMNW(mem, to, t) \
	VPANDD  mem, Z16, t \
	VPMAXUW t, to, to

// FLOATS stores the bfloat16 in z.
#define FLOATS(z, y, to) \
	VPMOVZXWD     y, Z17        \
	VPSLLD        $16, Z17, Z17 \
	VMOVUPS       Z17, to(DI)   \
	VEXTRACTI64X4 $1, z, Y17    \
	VPMOVZXWD     Y17, Z17      \
	VPSLLD        $16, Z17, Z17 \
	VMOVUPS       Z17, to+64(DI)

// func amaxColumnsBF16AVX512(dst *float32, x *uint16, cols, pitch, rows int) (done int)
TEXT ·amaxColumnsBF16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ cols+16(FP), DX
	MOVQ pitch+24(FP), R8
	MOVQ rows+32(FP), R9
	SHLQ $1, R8
	MOVL         $0x7fff7fff, AX
	VPBROADCASTD AX, Z16
	MOVL         $0x7f807f80, AX
	VPBROADCASTD AX, Z21

columns:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	MOVQ   SI, BX
	MOVQ   R9, CX

row:
	COLUMNW((BX), Z0, Z17)
	COLUMNW(64(BX), Z1, Z18)
	COLUMNW(128(BX), Z2, Z19)
	COLUMNW(192(BX), Z3, Z20)
	COLUMNW(256(BX), Z4, Z17)
	COLUMNW(320(BX), Z5, Z18)
	COLUMNW(384(BX), Z6, Z19)
	COLUMNW(448(BX), Z7, Z20)
	ADDQ   R8, BX
	DECQ   CX
	JNZ    row
	VPMAXUW  Z1, Z0, Z17
	VPMAXUW  Z3, Z2, Z18
	VPMAXUW  Z5, Z4, Z19
	VPMAXUW  Z7, Z6, Z20
	VPMAXUW  Z18, Z17, Z17
	VPMAXUW  Z20, Z19, Z19
	VPMAXUW  Z19, Z17, Z17
	VPCMPUW  $6, Z21, Z17, K1 // more than infinity
	KORTESTD K1, K1
	JNZ      columnsDone
	FLOATS(Z0, Y0, 0)
	FLOATS(Z1, Y1, 128)
	FLOATS(Z2, Y2, 256)
	FLOATS(Z3, Y3, 384)
	FLOATS(Z4, Y4, 512)
	FLOATS(Z5, Y5, 640)
	FLOATS(Z6, Y6, 768)
	FLOATS(Z7, Y7, 896)
	ADDQ   $512, SI
	ADDQ   $1024, DI
	SUBQ   $256, DX
	JNZ    columns

columnsDone:
	MOVQ cols+16(FP), AX
	SUBQ DX, AX
	MOVQ AX, done+40(FP)
	VZEROUPPER
	RET
