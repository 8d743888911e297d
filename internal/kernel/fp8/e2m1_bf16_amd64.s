//go:build !noasm

#include "textflag.h"
#include "e2m1_amd64.h"

// RAISEWORDS leaves in a the larger words of two shuffles of a and b, which are the halves of each.
#define RAISEWORDS(shuffle, low, high, a, b, t) \
	shuffle low, b, a, t  \
	shuffle high, b, a, a \
	VPMAXUW t, a, a

// TWOBLOCKS loads the magnitudes of two blocks.
#define TWOBLOCKS(i, to) \
	PREFETCHT0 AHEAD+(64*i)(SI)  \
	VPANDD     (64*i)(SI), Z31, to

// Registers: DI destination, SI source, CX blocks left.

// func amaxesE2M1BF16AVX512(dst *float32, x *uint16, blocks int) (done int)
TEXT ·amaxesE2M1BF16AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ blocks+16(FP), CX
	BROADCAST($0x7fff7fff, Z31)
	BROADCAST($0xffff0000, Z30)
	BROADCAST($0x7f800000, Z29)
	VMOVDQU32 e2m1Quarters<>(SB), Z28

// Blocks i, i+4, i+8 and i+12 end as the elements of quarter i.
amaxesLoop:
	TWOBLOCKS(0, Z0)
	TWOBLOCKS(1, Z1)
	TWOBLOCKS(2, Z2)
	TWOBLOCKS(3, Z3)
	TWOBLOCKS(4, Z4)
	TWOBLOCKS(5, Z5)
	TWOBLOCKS(6, Z6)
	TWOBLOCKS(7, Z7)
	RAISEWORDS(VSHUFI64X2, $0x88, $0xdd, Z0, Z1, Z16)
	RAISEWORDS(VSHUFI64X2, $0x88, $0xdd, Z2, Z3, Z17)
	RAISEWORDS(VSHUFI64X2, $0x88, $0xdd, Z4, Z5, Z18)
	RAISEWORDS(VSHUFI64X2, $0x88, $0xdd, Z6, Z7, Z19)
	RAISEWORDS(VSHUFPD, $0x00, $0xff, Z0, Z2, Z16)
	RAISEWORDS(VSHUFPD, $0x00, $0xff, Z4, Z6, Z17)
	RAISEWORDS(VSHUFPS, $0x88, $0xdd, Z0, Z4, Z16)
	VPSLLD  $16, Z0, Z1
	VPMAXUW Z1, Z0, Z0
	VPANDD  Z30, Z0, Z0
	VPCMPUD $6, Z29, Z0, K1
	KORTESTW K1, K1
	JNZ     amaxesDone
	VPERMD  Z0, Z28, Z0
	VMOVUPS Z0, (DI)
	ADDQ $512, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  amaxesLoop

amaxesDone:
	MOVQ blocks+16(FP), AX
	SUBQ CX, AX
	MOVQ AX, done+24(FP)
	VZEROUPPER
	RET

// Element i of quarter j is element 4i+j.
DATA e2m1Quarters<>+0(SB)/8, $0x0000000400000000
DATA e2m1Quarters<>+8(SB)/8, $0x0000000c00000008
DATA e2m1Quarters<>+16(SB)/8, $0x0000000500000001
DATA e2m1Quarters<>+24(SB)/8, $0x0000000d00000009
DATA e2m1Quarters<>+32(SB)/8, $0x0000000600000002
DATA e2m1Quarters<>+40(SB)/8, $0x0000000e0000000a
DATA e2m1Quarters<>+48(SB)/8, $0x0000000700000003
DATA e2m1Quarters<>+56(SB)/8, $0x0000000f0000000b
GLOBL e2m1Quarters<>(SB), RODATA|NOPTR, $64

// The words of the first block of a vector in the upper halves of floats; those of the second one
// are 16 farther on.
DATA e2m1Upper<>+0(SB)/8, $0x0001000000000000
DATA e2m1Upper<>+8(SB)/8, $0x0003000000020000
DATA e2m1Upper<>+16(SB)/8, $0x0005000000040000
DATA e2m1Upper<>+24(SB)/8, $0x0007000000060000
DATA e2m1Upper<>+32(SB)/8, $0x0009000000080000
DATA e2m1Upper<>+40(SB)/8, $0x000b0000000a0000
DATA e2m1Upper<>+48(SB)/8, $0x000d0000000c0000
DATA e2m1Upper<>+56(SB)/8, $0x000f0000000e0000
GLOBL e2m1Upper<>(SB), RODATA|NOPTR, $64

// CODESBF16 is CODES for two blocks.
#define CODESBF16(i, a, b) \
	VPERMW.Z (64*i)(SI), Z24, K7, Z19   \
	CODES((2*i), Z19, a)                \
	VPERMW.Z (64*i)(SI), Z23, K7, Z19   \
	CODES((2*i+1), Z19, b)

// Registers: DI destination, SI source, DX scales, CX elements left, R8 the tables; AX the table of
// a block.

// func encodeE2M1BF16AVX512(dst *byte, x *uint16, scales *byte, n int, limits *[128]E2M1Limits) (done int)
TEXT ·encodeE2M1BF16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ limits+32(FP), R8
	ENCODER
	BROADCAST($0x7fff7fff, Z22)
	BROADCAST($0x7f807f80, Z21)
	BROADCAST($0x00100010, Z20)
	VMOVDQU32 e2m1Upper<>(SB), Z24
	VPADDW    Z20, Z24, Z23
	MOVL      $0xaaaaaaaa, AX
	KMOVD     AX, K7

encodeLoop:
	VPANDD  (SI), Z22, Z0
	VPANDD  64(SI), Z22, Z1
	VPANDD  128(SI), Z22, Z2
	VPANDD  192(SI), Z22, Z3
	VPMAXUW Z1, Z0, Z0
	VPMAXUW Z3, Z2, Z2
	VPMAXUW Z2, Z0, Z0
	VPCMPUW $6, Z21, Z0, K1
	KORTESTD K1, K1
	JNZ     encodeDone
	PREFETCHT0 (AHEAD+0)(SI)
	CODESBF16(0, Z0, Z1)
	PREFETCHT0 (AHEAD+64)(SI)
	CODESBF16(1, Z2, Z3)
	MERGE(Z0, Z1, Z2, Z3, Z4)
	PREFETCHT0 (AHEAD+128)(SI)
	CODESBF16(2, Z5, Z6)
	PREFETCHT0 (AHEAD+192)(SI)
	CODESBF16(3, Z7, Z8)
	MERGE(Z5, Z6, Z7, Z8, Z9)
	CODEBYTES(Z3, Z8, (DI))
	ADDQ $8, DX
	ADDQ $256, SI
	ADDQ $64, DI
	SUBQ $128, CX
	JNZ  encodeLoop

encodeDone:
	MOVQ n+24(FP), AX
	SUBQ CX, AX
	MOVQ AX, done+40(FP)
	VZEROUPPER
	RET
