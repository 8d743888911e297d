//go:build !noasm

#include "textflag.h"
#include "e2m1_amd64.h"

// MAGNITUDES loads a block, whose NaNs become zeros.
#define MAGNITUDES(from, to) \
	VMOVUPS  from, to             \
	VCMPPS   $7, to, to, K1       \
	VPANDD.Z to, Z31, K1, to

// RAISE leaves in a the larger elements of two shuffles of a and b, which are the halves of each.
#define RAISE(shuffle, low, high, a, b, t) \
	shuffle low, b, a, t  \
	shuffle high, b, a, a \
	VMAXPS  t, a, a

// Registers: DI destination, SI source, CX blocks left.

// func amaxesE2M1AVX512(dst, x *float32, blocks int)
TEXT ·amaxesE2M1AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ blocks+16(FP), CX
	BROADCAST($0x7fffffff, Z31)

// Blocks i, i+4, i+8 and i+12 end as the quarters of one vector, and the four of these as the
// elements i of each quarter.
amaxesLoop:
	PREFETCHT0 (AHEAD+0)(SI)
	MAGNITUDES((SI), Z0)
	PREFETCHT0 (AHEAD+64)(SI)
	MAGNITUDES(64(SI), Z1)
	PREFETCHT0 (AHEAD+128)(SI)
	MAGNITUDES(128(SI), Z2)
	PREFETCHT0 (AHEAD+192)(SI)
	MAGNITUDES(192(SI), Z3)
	PREFETCHT0 (AHEAD+256)(SI)
	MAGNITUDES(256(SI), Z4)
	PREFETCHT0 (AHEAD+320)(SI)
	MAGNITUDES(320(SI), Z5)
	PREFETCHT0 (AHEAD+384)(SI)
	MAGNITUDES(384(SI), Z6)
	PREFETCHT0 (AHEAD+448)(SI)
	MAGNITUDES(448(SI), Z7)
	PREFETCHT0 (AHEAD+512)(SI)
	MAGNITUDES(512(SI), Z8)
	PREFETCHT0 (AHEAD+576)(SI)
	MAGNITUDES(576(SI), Z9)
	PREFETCHT0 (AHEAD+640)(SI)
	MAGNITUDES(640(SI), Z10)
	PREFETCHT0 (AHEAD+704)(SI)
	MAGNITUDES(704(SI), Z11)
	PREFETCHT0 (AHEAD+768)(SI)
	MAGNITUDES(768(SI), Z12)
	PREFETCHT0 (AHEAD+832)(SI)
	MAGNITUDES(832(SI), Z13)
	PREFETCHT0 (AHEAD+896)(SI)
	MAGNITUDES(896(SI), Z14)
	PREFETCHT0 (AHEAD+960)(SI)
	MAGNITUDES(960(SI), Z15)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z0, Z4, Z16)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z8, Z12, Z17)
	RAISE(VSHUFF64X2, $0x88, $0xdd, Z0, Z8, Z18)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z1, Z5, Z16)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z9, Z13, Z17)
	RAISE(VSHUFF64X2, $0x88, $0xdd, Z1, Z9, Z18)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z2, Z6, Z16)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z10, Z14, Z17)
	RAISE(VSHUFF64X2, $0x88, $0xdd, Z2, Z10, Z18)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z3, Z7, Z16)
	RAISE(VSHUFF64X2, $0x44, $0xee, Z11, Z15, Z17)
	RAISE(VSHUFF64X2, $0x88, $0xdd, Z3, Z11, Z18)
	RAISE(VSHUFPS, $0x44, $0xee, Z0, Z1, Z16)
	RAISE(VSHUFPS, $0x44, $0xee, Z2, Z3, Z17)
	RAISE(VSHUFPS, $0x88, $0xdd, Z0, Z2, Z18)
	VMOVUPS Z0, (DI)
	ADDQ $1024, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  amaxesLoop
	VZEROUPPER
	RET

// LOOK leaves in to the elements of a half of the table that Z4 numbers.
#define LOOK(at, to) \
	VMOVUPS    at(R8), to        \
	VPERMT2PS  64+at(R8), Z4, to

// Registers: DI codes, SI amaxes, CX those left, R8 the scales.

// func encodeE2M1ScalesAVX512(codes *byte, amax *float32, n int, s *E2M1Scales)
TEXT ·encodeE2M1ScalesAVX512(SB), NOSPLIT, $0-32
	MOVQ codes+0(FP), DI
	MOVQ amax+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ s+24(FP), R8
	BROADCAST($0x43e00000, Z16) // 448
	BROADCAST($0x3c800000, Z17) // the smallest normal number
	BROADCAST($(120<<3), Z18)   // the difference of the biases
	BROADCAST($(121<<3), Z19)
	BROADCAST($32, Z20)
	BROADCAST($64, Z21)
	BROADCAST($1, Z22)
	BROADCAST($0x7f7fffff, Z24) // the largest finite number
	VBROADCASTSS 512(R8), Z23
	MOVL  $0xffff, AX
	KMOVW AX, K1

// The product, about the scale, is cut off to E4M3, to the code of the scale or the one before; at
// a number of E4M3 it may be the one before that number.
scalesLoop:
	CMPQ CX, $16
	JGE  scalesWhole
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1
	MOVQ $16, CX

scalesWhole:
	VMOVUPS.Z  (SI), K1, Z0
	VMULPS     Z23, Z0, Z4
	VMINPS     Z16, Z4, Z4
	VMINPS     Z24, Z0, Z0
	VCMPPS     $1, Z17, Z4, K2
	VADDPS     Z17, Z4, K2, Z4
	VPSRLD     $20, Z4, Z4
	VMOVDQA32  Z18, Z5
	VMOVDQA32  Z19, K2, Z5
	VPSUBD     Z5, Z4, Z4
	VPTESTMD   Z20, Z4, K2
	VPTESTMD   Z21, Z4, K3
	LOOK(0, Z6)
	LOOK(128, Z7)
	LOOK(256, Z8)
	LOOK(384, Z9)
	VMOVAPS    Z7, K2, Z6
	VMOVAPS    Z9, K2, Z8
	VMOVAPS    Z8, K3, Z6
	VCMPPS     $0x1d, Z6, Z0, K2
	VPADDD     Z22, Z4, K2, Z4
	VPMOVDB    Z4, K1, (DI)
	ADDQ       $64, SI
	ADDQ       $16, DI
	SUBQ       $16, CX
	JNZ        scalesLoop
	VZEROUPPER
	RET

// UNSIGN makes the sign of NaNs in z zero, which are those of from.
#define UNSIGN(from, z) \
	VMOVUPS from, Z16        \
	VCMPPS  $3, Z16, Z16, K1 \
	VPANDD  Z25, z, K1, z

// UNORDERED sets a bit of k where one of two blocks has a NaN.
#define UNORDERED(a, b, k) \
	VMOVUPS a, Z16        \
	VCMPPS  $3, b, Z16, k

// Registers: DI destination, SI source, DX scales, CX elements left, R8 the tables; AX the table of
// a block.

// func encodeE2M1AVX512(dst *byte, x *float32, scales *byte, n int, limits *[128]E2M1Limits)
TEXT ·encodeE2M1AVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ limits+32(FP), R8
	ENCODER
	SUBQ $128, CX
	JCS  encodeRest

encodeLoop:
	UNORDERED((SI), 64(SI), K2)
	UNORDERED(128(SI), 192(SI), K3)
	UNORDERED(256(SI), 320(SI), K4)
	UNORDERED(384(SI), 448(SI), K5)
	KORW     K2, K3, K2
	KORW     K4, K5, K4
	KORTESTW K2, K4
	JNZ      encodeEight
	PREFETCHT0 (AHEAD+0)(SI)
	CODES(0, (SI), Z0)
	PREFETCHT0 (AHEAD+64)(SI)
	CODES(1, 64(SI), Z1)
	PREFETCHT0 (AHEAD+128)(SI)
	CODES(2, 128(SI), Z2)
	PREFETCHT0 (AHEAD+192)(SI)
	CODES(3, 192(SI), Z3)
	MERGE(Z0, Z1, Z2, Z3, Z4)
	PREFETCHT0 (AHEAD+256)(SI)
	CODES(4, 256(SI), Z5)
	PREFETCHT0 (AHEAD+320)(SI)
	CODES(5, 320(SI), Z6)
	PREFETCHT0 (AHEAD+384)(SI)
	CODES(6, 384(SI), Z7)
	PREFETCHT0 (AHEAD+448)(SI)
	CODES(7, 448(SI), Z8)
	MERGE(Z5, Z6, Z7, Z8, Z9)
	CODEBYTES(Z3, Z8, (DI))
	ADDQ $8, DX
	ADDQ $512, SI
	ADDQ $64, DI
	SUBQ $128, CX
	JCC  encodeLoop

encodeRest:
	ADDQ $128, CX
	JEQ  encodeDone
	MOVQ CX, BX
	MOVQ $-128, CX
	JMP  encodeBlock

encodeEight:
	MOVQ $128, BX
	SUBQ $128, CX

// BX elements, after which CX+128 are left.
encodeBlock:
	CODES(0, (SI), Z4)
	UNSIGN((SI), Z4)
	VPSRLD $28, Z4, Z4
	VPSRLQ $28, Z4, Z5
	VPORQ  Z5, Z4, Z4
	VPMOVQB Z4, (DI)
	INCQ   DX
	ADDQ   $64, SI
	ADDQ   $8, DI
	SUBQ   $16, BX
	JNZ    encodeBlock
	TESTQ  CX, CX
	JGE    encodeLoop
	JMP    encodeRest

encodeDone:
	VZEROUPPER
	RET

// Registers: DI destination, SI the first row, BX row 8, R9 the pitch of rows in bytes, R10, R11
// and R12 three times, five times and seven times that, DX scales, CX columns left, R8 the tables.

// func encodeE2M1DownAVX512(dst *byte, x *float32, pitch int, scales *byte, n int, limits
// *[128]E2M1Limits)
TEXT ·encodeE2M1DownAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ pitch+16(FP), R9
	MOVQ scales+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ limits+40(FP), R8
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R9)(R9*4), R11
	LEAQ (R10)(R9*4), R12
	ENCODER
	SHLQ $2, CX
	MOVQ R9, R14
	SHLQ $4, R14
	ADDQ SI, R14
	LEAQ (R14)(CX*1), R15

// 16 rows become the vectors of 16 columns, while the next 16 rows are prefetched row by row.
downLoop:
	LEAQ (SI)(R9*8), BX
	FETCHLINES
	CMPQ R14, R15
	JCS  downLoad
	ADDQ R9, R15
	MOVQ n+32(FP), AX
	SHLQ $2, AX
	MOVQ R15, R14
	SUBQ AX, R14

downLoad:
	VMOVUPS (SI), Z0
	VMOVUPS (SI)(R9*1), Z1
	VMOVUPS (SI)(R9*2), Z2
	VMOVUPS (SI)(R10*1), Z3
	VMOVUPS (SI)(R9*4), Z4
	VMOVUPS (SI)(R11*1), Z5
	VMOVUPS (SI)(R10*2), Z6
	VMOVUPS (SI)(R12*1), Z7
	VMOVUPS (BX), Z8
	VMOVUPS (BX)(R9*1), Z9
	VMOVUPS (BX)(R9*2), Z10
	VMOVUPS (BX)(R10*1), Z11
	VMOVUPS (BX)(R9*4), Z12
	VMOVUPS (BX)(R11*1), Z13
	VMOVUPS (BX)(R10*2), Z14
	VMOVUPS (BX)(R12*1), Z15
	TURN
	VCMPPS $3, Z10, Z8, K2
	VCMPPS $3, Z5, Z11, K3
	KORW K3, K2, K2
	VCMPPS $3, Z13, Z6, K3
	KORW K3, K2, K2
	VCMPPS $3, Z4, Z1, K3
	KORW K3, K2, K2
	VCMPPS $3, Z2, Z0, K3
	KORW K3, K2, K2
	VCMPPS $3, Z19, Z3, K3
	KORW K3, K2, K2
	VCMPPS $3, Z14, Z12, K3
	KORW K3, K2, K2
	VCMPPS $3, Z9, Z15, K3
	KORW K3, K2, K2
	KORTESTW K2, K2
	JNZ downUnsign

downCodes:
	CODES(0, Z10, Z20)
	CODES(1, Z8, Z21)
	CODES(2, Z5, Z22)
	CODES(3, Z11, Z23)
	MERGE(Z20, Z21, Z22, Z23, Z10)
	CODES(4, Z13, Z20)
	CODES(5, Z6, Z21)
	CODES(6, Z4, Z22)
	CODES(7, Z1, Z24)
	MERGE(Z20, Z21, Z22, Z24, Z13)
	CODEBYTES(Z23, Z24, (DI))
	CODES(8, Z2, Z20)
	CODES(9, Z0, Z21)
	CODES(10, Z19, Z22)
	CODES(11, Z3, Z23)
	MERGE(Z20, Z21, Z22, Z23, Z2)
	CODES(12, Z14, Z20)
	CODES(13, Z12, Z21)
	CODES(14, Z9, Z22)
	CODES(15, Z15, Z24)
	MERGE(Z20, Z21, Z22, Z24, Z14)
	CODEBYTES(Z23, Z24, 64(DI))
	ADDQ $16, DX
	ADDQ $64, SI
	ADDQ $128, DI
	SUBQ $64, CX
	JNZ downLoop
	VZEROUPPER
	RET

// The signs of NaNs become zero.
downUnsign:
	VCMPPS $3, Z10, Z10, K1
	VPANDD Z25, Z10, K1, Z10
	VCMPPS $3, Z8, Z8, K1
	VPANDD Z25, Z8, K1, Z8
	VCMPPS $3, Z5, Z5, K1
	VPANDD Z25, Z5, K1, Z5
	VCMPPS $3, Z11, Z11, K1
	VPANDD Z25, Z11, K1, Z11
	VCMPPS $3, Z13, Z13, K1
	VPANDD Z25, Z13, K1, Z13
	VCMPPS $3, Z6, Z6, K1
	VPANDD Z25, Z6, K1, Z6
	VCMPPS $3, Z4, Z4, K1
	VPANDD Z25, Z4, K1, Z4
	VCMPPS $3, Z1, Z1, K1
	VPANDD Z25, Z1, K1, Z1
	VCMPPS $3, Z2, Z2, K1
	VPANDD Z25, Z2, K1, Z2
	VCMPPS $3, Z0, Z0, K1
	VPANDD Z25, Z0, K1, Z0
	VCMPPS $3, Z19, Z19, K1
	VPANDD Z25, Z19, K1, Z19
	VCMPPS $3, Z3, Z3, K1
	VPANDD Z25, Z3, K1, Z3
	VCMPPS $3, Z14, Z14, K1
	VPANDD Z25, Z14, K1, Z14
	VCMPPS $3, Z12, Z12, K1
	VPANDD Z25, Z12, K1, Z12
	VCMPPS $3, Z9, Z9, K1
	VPANDD Z25, Z9, K1, Z9
	VCMPPS $3, Z15, Z15, K1
	VPANDD Z25, Z15, K1, Z15
	JMP downCodes

// func decodeE2M1AVX512(dst *float32, src, scales *byte, n int, values *[256]E2M1Values)
TEXT ·decodeE2M1AVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ values+32(FP), R8

decodeLoop:
	MOVBLZX   (DX), AX
	SHLL      $6, AX
	VPMOVZXBQ (SI), Z0
	VPSLLQ    $28, Z0, Z1
	VPORQ     Z1, Z0, Z0
	VPERMPS   (R8)(AX*1), Z0, Z1
	VMOVUPS   Z1, (DI)
	INCQ      DX
	ADDQ      $8, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       decodeLoop
	VZEROUPPER
	RET

// Registers: DI the first row, BX row 8, R9 the pitch of rows in bytes, R10, R11 and R12 three
// times, five times and seven times that, SI source, R13 its pitch, DX scales, CX columns left, R8
// the tables.

// COLUMN loads the numbers of a column.
#define COLUMN(j, z) \
	MOVBLZX   j(DX), AX           \
	SHLL      $6, AX              \
	VPMOVZXBQ (SI), z             \
	VPSLLQ    $28, z, Z16         \
	VPORQ     Z16, z, z           \
	VPERMPS   (R8)(AX*1), z, z    \
	ADDQ      R13, SI

// ROWS stores what TURN has left.
#define ROWS(store) \
	store Z10, (DI)        \
	store Z8, (DI)(R9*1)   \
	store Z5, (DI)(R9*2)   \
	store Z11, (DI)(R10*1) \
	store Z13, (DI)(R9*4)  \
	store Z6, (DI)(R11*1)  \
	store Z4, (DI)(R10*2)  \
	store Z1, (DI)(R12*1)  \
	store Z2, (BX)         \
	store Z0, (BX)(R9*1)   \
	store Z19, (BX)(R9*2)  \
	store Z3, (BX)(R10*1)  \
	store Z14, (BX)(R9*4)  \
	store Z12, (BX)(R11*1) \
	store Z9, (BX)(R10*2)  \
	store Z15, (BX)(R12*1)

// func decodeE2M1DownAVX512(dst *float32, pitch int, src *byte, srcPitch int, scales *byte, n int,
// values *[256]E2M1Values, past bool)
TEXT ·decodeE2M1DownAVX512(SB), NOSPLIT, $0-57
	MOVQ dst+0(FP), DI
	MOVQ pitch+8(FP), R9
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R13
	MOVQ scales+32(FP), DX
	MOVQ n+40(FP), CX
	MOVQ values+48(FP), R8
	MOVBLZX past+56(FP), R14
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R9)(R9*4), R11
	LEAQ (R10)(R9*4), R12

decodeDownLoop:
	LEAQ (DI)(R9*8), BX
	COLUMN(0, Z0)
	COLUMN(1, Z1)
	COLUMN(2, Z2)
	COLUMN(3, Z3)
	COLUMN(4, Z4)
	COLUMN(5, Z5)
	COLUMN(6, Z6)
	COLUMN(7, Z7)
	COLUMN(8, Z8)
	COLUMN(9, Z9)
	COLUMN(10, Z10)
	COLUMN(11, Z11)
	COLUMN(12, Z12)
	COLUMN(13, Z13)
	COLUMN(14, Z14)
	COLUMN(15, Z15)
	TURN
	TESTL R14, R14
	JNZ  decodeDownStream
	ROWS(VMOVUPS)

decodeDownNext:
	ADDQ $16, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  decodeDownLoop
	TESTL R14, R14
	JZ   decodeDownDone
	SFENCE

decodeDownDone:
	VZEROUPPER
	RET

decodeDownStream:
	ROWS(VMOVNTPS)
	JMP decodeDownNext

// FOURROWS loads rows from R14 on and goes on to the next ones. R13 is the pitch of rows in bytes,
// and R15 three times that.
#define FOURROWS(a, b, c, d) \
	VMOVUPS (R14), a         \
	VMOVUPS (R14)(R13*1), b  \
	VMOVUPS (R14)(R13*2), c  \
	VMOVUPS (R14)(R15*1), d  \
	LEAQ    (R14)(R13*4), R14

// Registers: DI the first row of the result, BX row 8, R9 the pitch of rows in bytes, R10, R11 and
// R12 three times, five times and seven times that, SI source, CX columns left.

// func turnRowsAVX512(dst *float32, dstPitch int, src *float32, srcPitch, n int)
TEXT ·turnRowsAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ dstPitch+8(FP), R9
	MOVQ src+16(FP), SI
	MOVQ srcPitch+24(FP), R13
	MOVQ n+32(FP), CX
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R9)(R9*4), R11
	LEAQ (R10)(R9*4), R12
	SHLQ $2, R13
	LEAQ (R13)(R13*2), R15

turnLoop:
	LEAQ (DI)(R9*8), BX
	MOVQ SI, R14
	FOURROWS(Z0, Z1, Z2, Z3)
	FOURROWS(Z4, Z5, Z6, Z7)
	FOURROWS(Z8, Z9, Z10, Z11)
	FOURROWS(Z12, Z13, Z14, Z15)
	TURN
	ROWS(VMOVUPS)
	ADDQ $64, SI
	LEAQ (BX)(R9*8), DI
	SUBQ $16, CX
	JNZ  turnLoop
	VZEROUPPER
	RET
