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

// WORDS leaves in bits 5 to 8 of the words of z the codes of two blocks, of which the second one has
// its numbers in the upper half. What E2M1Words describes is looked up for both at once, with bit 5
// of an index for the second one.
#define WORDS(i, z, t, u) \
	MOVBLZX      (2*i)(DX), AX           \
	MOVBLZX      (2*i+1)(DX), BX         \
	VPBROADCASTD 8192(R8)(AX*4), z       \
	VPBROADCASTD 8192(R8)(BX*4), K7, z   \
	SHLL         $6, AX                  \
	SHLL         $6, BX                  \
	VPANDD       (64*i)(SI), Z22, t      \
	VPSUBUSW     z, t, t                 \
	VPMINUW      Z23, t, t               \
	VPSRLW       $5, t, z                \
	VPORD        Z24, z, z               \
	VMOVDQU64    (R8)(AX*1), u           \
	VPERMI2W     (R8)(BX*1), u, z        \
	VPADDW       t, z, z                 \
	VPSRLW       $7, (64*i)(SI), t       \
	VPTERNLOGD   $0xb8, t, Z25, z

// BOTH leaves in a pairs of codes, those of a in the lower halves of words and those of b in the
// upper ones.
#define BOTH(a, b) \
	VPSRLW     $5, a, a          \
	VPSLLW     $3, b, b          \
	VPTERNLOGD $0xf8, Z26, b, a  \
	VPMADDWD   Z27, a, a

// Registers: DI destination, SI source, DX scales, CX elements left, R8 the tables; AX and BX the
// tables of two blocks.

// func encodeE2M1BF16AVX512(dst *byte, x *uint16, scales *byte, n int, words *E2M1Words) (done int)
TEXT ·encodeE2M1BF16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ words+32(FP), R8
	BROADCAST($0x7f807f80, Z21)
	BROADCAST($0x7fff7fff, Z22)
	BROADCAST($0x03ff03ff, Z23)
	BROADCAST($0x00200020, Z24)
	BROADCAST($0x01000100, Z25)
	BROADCAST($0x0f000f00, Z26)
	BROADCAST($0x00100001, Z27)
	VBROADCASTI32X4 e2m1Packed<>(SB), Z28
	VMOVDQU32 e2m1Quarters<>(SB), Z29
	MOVL      $0xff00, AX
	KMOVW     AX, K7
	VMOVDQA32.Z Z24, K7, Z24

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
	WORDS(0, Z0, Z4, Z5)
	PREFETCHT0 (AHEAD+64)(SI)
	WORDS(1, Z1, Z6, Z7)
	PREFETCHT0 (AHEAD+128)(SI)
	WORDS(2, Z2, Z8, Z9)
	PREFETCHT0 (AHEAD+192)(SI)
	WORDS(3, Z3, Z10, Z11)
	BOTH(Z0, Z2)
	BOTH(Z1, Z3)
	VPACKUSDW Z1, Z0, Z0
	VPSHUFB   Z28, Z0, Z0
	VPERMD    Z0, Z29, Z0
	VMOVDQU64 Z0, (DI)
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

// The bytes of a quarter: the lower ones of its first and its second half, then the upper ones.
DATA e2m1Packed<>+0(SB)/8, $0x0e0c0a0806040200
DATA e2m1Packed<>+8(SB)/8, $0x0f0d0b0907050301
GLOBL e2m1Packed<>(SB), RODATA|NOPTR, $16

// TWOCOLUMNS leaves in bytes 0 and 2 of the quarters of words of x, whose words are those of two
// columns in turn, the pairs of their codes.
#define TWOCOLUMNS(column, x) \
	MOVBLZX      (column)(DX), AX        \
	MOVBLZX      (column+1)(DX), BX      \
	VPBROADCASTD 8192(R8)(AX*4), Z20     \
	VPBROADCASTD 8192(R8)(BX*4), Z17     \
	VMOVDQU16    Z17, K7, Z20            \
	SHLL         $6, AX                  \
	SHLL         $6, BX                  \
	VPANDD       x, Z22, Z16             \
	VPSUBUSW     Z20, Z16, Z16           \
	VPMINUW      Z23, Z16, Z16           \
	VPSRLW       $5, Z16, Z20            \
	VPORD        Z24, Z20, Z20           \
	VMOVDQU64    (R8)(AX*1), Z17         \
	VPERMI2W     (R8)(BX*1), Z17, Z20    \
	VPADDW       Z16, Z20, Z20           \
	VPSRLW       $7, x, x                \
	VPTERNLOGD   $0xb8, x, Z25, Z20      \
	VPSRLW       $5, Z20, Z20            \
	VPSRLQ       $28, Z20, x             \
	VPORQ        Z20, x, x

// EIGHTCOLUMNS stores the codes of the columns in a, b, c and d.
#define EIGHTCOLUMNS(column, a, b, c, d, to) \
	TWOCOLUMNS(column, a)   \
	TWOCOLUMNS(column+2, b) \
	TWOCOLUMNS(column+4, c) \
	TWOCOLUMNS(column+6, d) \
	VPSLLD    $8, b, b      \
	VPORD     b, a, a       \
	VPSLLD    $8, d, d      \
	VPORD     d, c, c       \
	VSHUFPS   $0x88, c, a, a \
	VPSHUFB   Z30, a, a     \
	VPERMW    a, Z31, a     \
	VMOVDQU64 a, to

// The bytes of a quarter: two of each column. Those of columns 1 and 2 and of 5 and 6 have changed
// places.
DATA e2m1Columns<>+0(SB)/8, $0x0703050106020400
DATA e2m1Columns<>+8(SB)/8, $0x0f0b0d090e0a0c08
GLOBL e2m1Columns<>(SB), RODATA|NOPTR, $16

// PAIROFROWS loads two rows, and raises the words of Z17 to their magnitudes.
#define PAIROFROWS(first, second, a, b) \
	VMOVDQU32 first, a      \
	VMOVDQU32 second, b     \
	VPANDD    Z22, a, Z18   \
	VPMAXUW   Z18, Z17, Z17 \
	VPANDD    Z22, b, Z18   \
	VPMAXUW   Z18, Z17, Z17

// Registers: DI destination, SI the first row, BX row 8, R9 the pitch of rows in bytes, R10, R11
// and R12 three times, five times and seven times that, DX scales, CX bytes of columns left, R8 the
// tables, R14 what is prefetched and R15 the end of its row.

// func encodeE2M1DownBF16AVX512(dst *byte, x *uint16, pitch int, scales *byte, n int, words
// *E2M1Words) (done int)
TEXT ·encodeE2M1DownBF16AVX512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ pitch+16(FP), R9
	MOVQ scales+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ words+40(FP), R8
	SHLQ $1, R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R9)(R9*4), R11
	LEAQ (R10)(R9*4), R12
	BROADCAST($0x7f807f80, Z21)
	BROADCAST($0x7fff7fff, Z22)
	BROADCAST($0x03ff03ff, Z23)
	BROADCAST($0x00200000, Z24)
	BROADCAST($0x01000100, Z25)
	VBROADCASTI32X4 e2m1Columns<>(SB), Z30
	VMOVDQU64 e2m1Words<>(SB), Z31
	MOVL  $0xaaaaaaaa, AX
	KMOVD AX, K7
	SHLQ $1, CX
	MOVQ R9, R14
	SHLQ $4, R14
	ADDQ SI, R14
	LEAQ (R14)(CX*1), R15

// 16 rows become the vectors of 32 columns, while the next 16 rows are prefetched row by row.
downLoop:
	LEAQ (SI)(R9*8), BX
	FETCHLINES
	CMPQ R14, R15
	JCS  downLoad
	ADDQ R9, R15
	MOVQ n+32(FP), AX
	SHLQ $1, AX
	MOVQ R15, R14
	SUBQ AX, R14

downLoad:
	VPXORD Z17, Z17, Z17
	PAIROFROWS((SI), (SI)(R9*1), Z0, Z1)
	PAIROFROWS((SI)(R9*2), (SI)(R10*1), Z2, Z3)
	PAIROFROWS((SI)(R9*4), (SI)(R11*1), Z4, Z5)
	PAIROFROWS((SI)(R10*2), (SI)(R12*1), Z6, Z7)
	PAIROFROWS((BX), (BX)(R9*1), Z8, Z9)
	PAIROFROWS((BX)(R9*2), (BX)(R10*1), Z10, Z11)
	PAIROFROWS((BX)(R9*4), (BX)(R11*1), Z12, Z13)
	PAIROFROWS((BX)(R10*2), (BX)(R12*1), Z14, Z15)
	VPCMPUW  $6, Z21, Z17, K1
	KORTESTD K1, K1
	JNZ      downDone
	TURN
	EIGHTCOLUMNS(0, Z10, Z8, Z5, Z11, (DI))
	EIGHTCOLUMNS(8, Z13, Z6, Z4, Z1, 64(DI))
	EIGHTCOLUMNS(16, Z2, Z0, Z19, Z3, 128(DI))
	EIGHTCOLUMNS(24, Z14, Z12, Z9, Z15, 192(DI))
	ADDQ $32, DX
	ADDQ $64, SI
	ADDQ $256, DI
	SUBQ $64, CX
	JNZ  downLoop

downDone:
	MOVQ n+32(FP), AX
	SHRQ $1, CX
	SUBQ CX, AX
	MOVQ AX, done+48(FP)
	VZEROUPPER
	RET
