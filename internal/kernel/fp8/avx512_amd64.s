//go:build !noasm

#include "textflag.h"

#define LANES 16
#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4

// words selects the lower halves of the doublewords of two vectors in the order of VPACKSSDW.
DATA words<>+0(SB)/8, $0x0006000400020000
DATA words<>+8(SB)/8, $0x0026002400220020
DATA words<>+16(SB)/8, $0x000e000c000a0008
DATA words<>+24(SB)/8, $0x002e002c002a0028
DATA words<>+32(SB)/8, $0x0016001400120010
DATA words<>+40(SB)/8, $0x0036003400320030
DATA words<>+48(SB)/8, $0x001e001c001a0018
DATA words<>+56(SB)/8, $0x003e003c003a0038
GLOBL words<>(SB), RODATA|NOPTR, $64

// order brings what was packed from four vectors into their order.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000c00000008
DATA order<>+16(SB)/8, $0x0000000500000001
DATA order<>+24(SB)/8, $0x0000000d00000009
DATA order<>+32(SB)/8, $0x0000000600000002
DATA order<>+40(SB)/8, $0x0000000e0000000a
DATA order<>+48(SB)/8, $0x0000000700000003
DATA order<>+56(SB)/8, $0x0000000f0000000b
GLOBL order<>(SB), RODATA|NOPTR, $64

// fours repeats each of four doublewords four times.
DATA fours<>+0(SB)/8, $0x0000000000000000
DATA fours<>+8(SB)/8, $0x0000000000000000
DATA fours<>+16(SB)/8, $0x0000000100000001
DATA fours<>+24(SB)/8, $0x0000000100000001
DATA fours<>+32(SB)/8, $0x0000000200000002
DATA fours<>+40(SB)/8, $0x0000000200000002
DATA fours<>+48(SB)/8, $0x0000000300000003
DATA fours<>+56(SB)/8, $0x0000000300000003
GLOBL fours<>(SB), RODATA|NOPTR, $64

#define SIGNS \
	MOVL         $0x7fffffff, AX \
	VPBROADCASTD AX, Z16

// Of a number and a NaN, VMAXPS returns its last source, the first one here.
#define AMAXOF(mem, to, t) \
	VPANDD mem, Z16, t \
	VMAXPS to, t, to

#define AMAXSTEP \
	AMAXOF((SI), Z0, Z1)   \
	AMAXOF(64(SI), Z2, Z3)

#define AMAXHALF AMAXOF((SI), Z0, Z1)

#define GREATEST \
	VEXTRACTF64X4 $1, Z0, Y1      \
	VMAXPS        Y1, Y0, Y0      \
	VEXTRACTF128  $1, Y0, X1      \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0x4e, X0, X1   \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0xb1, X0, X1   \
	VMAXPS        X1, X0, X0

#define FORMAT \
	SIGNS                        \
	MOVL         $0x7f800000, AX \
	VPBROADCASTD AX, Z17         \
	MOVL         $0x80, AX       \
	VPBROADCASTD AX, Z18         \
	VMOVQ        (R8), X19       \
	VPBROADCASTD 44(R8), Z20     \
	VBROADCASTSS 12(R8), Z21     \
	VBROADCASTSS 16(R8), Z22     \
	VPBROADCASTD 24(R8), Z24     \
	VMOVUPS      56(R8), Z25     \
	VMOVUPS      120(R8), Z26    \
	VMOVDQU32    words<>(SB), Z27 \
	VMOVDQU32    order<>(SB), Z28 \
	MOVL         $0x80808080, AX \
	VPBROADCASTD AX, Z29

// With e the power of two at or below the magnitude, which is at least the smallest normal number,
// the sum with a power of two whose unit is that of fp8 numbers from e on has the mantissa of the
// result in its low bits, and the bits of e have the exponent.
#define ENCODE(to) \
	VPANDD     Z16, Z1, Z2        \
	VCMPPS     $3, Z1, Z1, K2     \
	VMINPS     Z21, Z2, Z2        \
	VMAXPS     Z22, Z2, Z3        \
	VPANDD     Z17, Z3, Z3        \
	VPADDD     Z20, Z3, Z4        \
	VADDPS     Z4, Z2, Z2         \
	VPSRLD     X19, Z3, Z3        \
	VPADDD     Z3, Z2, Z2         \
	VMOVDQA32  Z24, K2, Z2        \
	VPSRLD     $24, Z1, Z1        \
	VPTERNLOGD $0xf8, Z18, Z1, Z2 \
	VPMOVDB    Z2, to

// NEAREST adds the number from the sums to a magnitude a, which is at most the largest number, so
// that its fp8 is in the low byte.
#define NEAREST(a, t) \
	VMAXPS    Z22, a, t     \
	VPSRLD    $23, t, t     \
	VPERMI2PS Z26, Z25, t   \
	VADDPS    t, a, a

// STOREFOUR stores fp8 of the magnitudes in Z5 to Z8 with the signs of Z1 to Z4.
#define STOREFOUR \
	NEAREST(Z5, Z9)               \
	NEAREST(Z6, Z10)              \
	NEAREST(Z7, Z11)              \
	NEAREST(Z8, Z12)              \
	VPACKSSDW  Z2, Z1, Z1         \
	VPACKSSDW  Z4, Z3, Z3         \
	VPACKSSWB  Z3, Z1, Z1         \
	VPERMT2W   Z6, Z27, Z5        \
	VPERMT2W   Z8, Z27, Z7        \
	VPACKUSWB  Z7, Z5, Z5         \
	VPTERNLOGD $0xf8, Z29, Z1, Z5 \
	VPERMD     Z5, Z28, Z5        \
	VMOVDQU32  Z5, (DI)

#define FETCHFOUR \
	PREFETCHT0 AHEAD(SI)     \
	PREFETCHT0 AHEAD+64(SI)  \
	PREFETCHT0 AHEAD+128(SI) \
	PREFETCHT0 AHEAD+192(SI)

#define ENCODEFOUR(nan) \
	VCMPPS   $3, Z1, Z2, K1  \
	VCMPPS   $3, Z3, Z4, K2  \
	KORTESTW K1, K2          \
	JNE      nan             \
	VPANDD   Z16, Z1, Z5     \
	VPANDD   Z16, Z2, Z6     \
	VPANDD   Z16, Z3, Z7     \
	VPANDD   Z16, Z4, Z8     \
	VMINPS   Z21, Z5, Z5     \
	VMINPS   Z21, Z6, Z6     \
	VMINPS   Z21, Z7, Z7     \
	VMINPS   Z21, Z8, Z8     \
	STOREFOUR

#define WORDS \
	MOVL         $0x8000, AX     \
	VPBROADCASTW AX, Y16         \
	MOVL         $0x7f, AX       \
	VPBROADCASTW AX, Y17         \
	MOVL         $0x7fc00000, AX \
	VPBROADCASTD AX, Z18         \
	VMOVQ        32(R8), X19     \
	VPBROADCASTD 40(R8), Y20     \
	VBROADCASTSS 28(R8), Z21

#define DECODE(from) \
	VPMOVZXBW from, Y1         \
	VPSLLW    $8, Y1, Y2       \
	VPANDD    Y16, Y2, Y2      \
	VPANDD    Y17, Y1, Y1      \
	VPCMPEQW  Y20, Y1, K2      \
	VPSLLW    X19, Y1, Y1      \
	VPORD     Y2, Y1, Y1       \
	VCVTPH2PS Y1, Z1           \
	VPORD     Z18, Z1, K2, Z1  \
	VMULPS    Z21, Z1, Z1

#define EXPONENTS \
	VPBROADCASTD AX, Z16         \
	MOVL         $0x1fffff, AX   \
	VPBROADCASTD AX, Z17         \
	MOVL         $0x7f800000, AX \
	VPBROADCASTD AX, Z18         \
	MOVL         $254, AX        \
	VPBROADCASTD AX, Z19         \
	MOVL         $0x400000, AX   \
	VPBROADCASTD AX, Z20         \
	MOVL         $0x7fc00000, AX \
	VPBROADCASTD AX, Z21         \
	VPXORD       Z22, Z22, Z22

#define CODES \
	VMOVDQU32 (SI), Z0        \
	VPADDD    Z17, Z0, Z1     \
	VPSRLD    $23, Z1, Z1     \
	VPSUBD    Z16, Z1, Z1     \
	VPMAXSD   Z22, Z1, Z1     \
	VPCMPEQD  Z18, Z0, K1     \
	VMOVDQA32 Z19, K1, Z1     \
	VPMOVDB   Z1, (DI)        \
	VPSUBD    Z1, Z19, Z2     \
	VPSLLD    $23, Z2, Z2     \
	VMOVDQA32 Z20, K1, Z2     \
	VMOVDQU32 Z2, (SI)

#define POWERS \
	VPMOVZXBD (SI), Z0        \
	VPSLLD    $23, Z0, Z1     \
	VPCMPEQD  Z22, Z0, K1     \
	VPCMPGTD  Z19, Z0, K2     \
	VMOVDQA32 Z20, K1, Z1     \
	VMOVDQA32 Z21, K2, Z1     \
	VMOVDQU32 Z1, (DI)

#define ENCODEE8M0 ·encodeE8M0AVX512
#define DECODEE8M0 ·decodeE8M0AVX512
#define AMAXES ·amaxesAVX512
#define RAISE ·raiseAVX512
#define ENCODEBLOCKS ·encodeAVX512
#define ENCODEEACH ·encodeEachAVX512
#define DECODEBLOCKS ·decodeAVX512
#define DECODEEACH ·decodeEachAVX512

#include "codec_amd64.h"

// PRODUCT multiplies the elements that are at bytes from BX on by their scales.
#define PRODUCT(at, to) \
	VMOVUPS at(SI)(BX*1), to     \
	VMULPS  at(DX)(BX*1), to, to

// func encodeColumnsAVX512(dst *byte, x, scale *float32, cols, rows, dstPitch, pitch int, f *Format)
TEXT ·encodeColumnsAVX512(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scale+16(FP), DX
	MOVQ cols+24(FP), CX
	MOVQ rows+32(FP), R9
	MOVQ dstPitch+40(FP), R10
	MOVQ pitch+48(FP), R11
	MOVQ f+56(FP), R8
	FORMAT
	SUBQ CX, R10
	SHLQ $2, CX
	SHLQ $2, R11

row:
	XORL BX, BX

fourOfRow:
	PRODUCT(0, Z1)
	PRODUCT(64, Z2)
	PRODUCT(128, Z3)
	PRODUCT(192, Z4)
	VCMPPS   $3, Z1, Z2, K1
	VCMPPS   $3, Z3, Z4, K2
	KORTESTW K1, K2
	JNE      nan
	VPANDD   Z16, Z1, Z5
	VPANDD   Z16, Z2, Z6
	VPANDD   Z16, Z3, Z7
	VPANDD   Z16, Z4, Z8
	VMINPS   Z21, Z5, Z5
	VMINPS   Z21, Z6, Z6
	VMINPS   Z21, Z7, Z7
	VMINPS   Z21, Z8, Z8
	STOREFOUR

stored:
	ADDQ $64, DI
	ADDQ $256, BX
	CMPQ BX, CX
	JNE  fourOfRow
	ADDQ R10, DI
	ADDQ R11, SI
	DECQ R9
	JNZ  row
	VZEROUPPER
	RET

nan:
	ENCODE((DI))
	PRODUCT(64, Z1)
	ENCODE(16(DI))
	PRODUCT(128, Z1)
	ENCODE(32(DI))
	PRODUCT(192, Z1)
	ENCODE(48(DI))
	JMP stored

// func scalesAVX512(amax, inv *float32, n int, f *Format, epsilon float32, mask uint32)
TEXT ·scalesAVX512(SB), NOSPLIT, $0-40
	MOVQ         amax+0(FP), SI
	MOVQ         inv+8(FP), DI
	MOVQ         n+16(FP), CX
	MOVQ         f+24(FP), R8
	VBROADCASTSS epsilon+32(FP), Z13
	MOVL         mask+36(FP), AX
	VPBROADCASTD AX, Z14
	VBROADCASTSS 12(R8), Z21
	MOVL         $0x7f7fffff, AX
	VPBROADCASTD AX, Z15
	MOVL         $0x3f800000, AX
	VPBROADCASTD AX, Z18

sixteen:
	VMAXPS    (SI), Z13, Z0
	VPTESTNMD Z0, Z0, K1
	VCMPPS    $0x1e, Z15, Z0, K2
	VDIVPS    Z0, Z21, Z1
	KORW      K1, K2, K1
	VMINPS    Z15, Z1, Z1
	VPANDD    Z14, Z1, Z1
	VMOVAPS   Z18, K1, Z1
	VDIVPS    Z1, Z18, Z2
	VMOVUPS   Z1, (SI)
	VMOVUPS   Z2, (DI)
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       sixteen
	VZEROUPPER
	RET

// func encodeAmaxAVX512(dst *byte, x *float32, n int, f *Format, scale float32) (amax float32)
TEXT ·encodeAmaxAVX512(SB), NOSPLIT, $0-44
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         f+24(FP), R8
	VBROADCASTSS scale+32(FP), Z0
	VXORPS       Z14, Z14, Z14
	VXORPS       Z15, Z15, Z15
	FORMAT

fours:
	SUBQ $64, CX
	JCS  rest
	AMAXOF((SI), Z14, Z1)
	AMAXOF(64(SI), Z15, Z2)
	AMAXOF(128(SI), Z14, Z3)
	AMAXOF(192(SI), Z15, Z4)
	FETCHFOUR
	VMULPS (SI), Z0, Z1
	VMULPS 64(SI), Z0, Z2
	VMULPS 128(SI), Z0, Z3
	VMULPS 192(SI), Z0, Z4
	ENCODEFOUR(rest)
	ADDQ $256, SI
	ADDQ $64, DI
	JMP  fours

rest:
	ADDQ $64, CX
	JEQ  done

single:
	AMAXOF((SI), Z14, Z1)
	VMULPS (SI), Z0, Z1
	ENCODE((DI))
	ADDQ   $64, SI
	ADDQ   $16, DI
	SUBQ   $16, CX
	JNZ    single

done:
	VMAXPS Z15, Z14, Z0
	GREATEST
	VMOVSS X0, amax+40(FP)
	VZEROUPPER
	RET

// The loops below find the scales of the next 512 elements before they round the last 512, because
// a scale takes longer than the instructions that wait for it can bridge. Magnitudes are compared
// as integers, so that a NaN or an infinity is seen.
//
// Registers: R13 where scales are found, BX how often they will be, R11 whether they were now, R9
// whether they were before, R10 how often elements were rounded, Z23 the scales of 16 blocks of 32
// elements.

#define GROUP 512

#define ROUNDGROUP \
	TESTQ   R9, R9                \
	JEQ     first                 \
	LEAQ    scales-64(SP), R12    \
	MOVQ    $(GROUP/64), CX       \
round: \
	FETCHFOUR                     \
	VBROADCASTSS (R12), Z0        \
	VBROADCASTSS 4(R12), Z30      \
	VMULPS       (SI), Z0, Z1     \
	VMULPS       64(SI), Z0, Z2   \
	VMULPS       128(SI), Z30, Z3 \
	VMULPS       192(SI), Z30, Z4 \
	VPANDD       Z16, Z1, Z5      \
	VPANDD       Z16, Z2, Z6      \
	VPANDD       Z16, Z3, Z7      \
	VPANDD       Z16, Z4, Z8      \
	STOREFOUR                     \
	ADDQ         $256, SI         \
	ADDQ         $64, DI          \
	ADDQ         $8, R12          \
	DECQ         CX               \
	JNZ          round            \
	INCQ         R10              \
first: \
	VMOVUPS      Z23, scales-64(SP) \
	MOVQ         R11, R9          \
	TESTQ        R9, R9           \
	JNZ          group

// GREATER leaves the greater magnitudes of two vectors in r.
#define GREATER(at, r, t) \
	VPANDD     at(R13), Z16, r       \
	VPANDD     at+64(R13), Z16, t    \
	VPMAXUD    t, r, r

// GREATEROF does so for two blocks of 128 elements.
#define GREATEROF(at, r, t) \
	GREATER(at, r, t)      \
	GREATER(at+128, Z8, t) \
	GREATER(at+256, Z9, t) \
	GREATER(at+384, Z10, t) \
	VPMAXUD Z8, r, r       \
	VPMAXUD Z9, Z10, Z9    \
	VPMAXUD Z9, r, r

// PAIRS leaves the greater of two doublewords of each of x and y in x, by turns, and FOURS those of
// two such vectors.
#define PAIRS(x, y, t) \
	VPUNPCKLDQ y, x, t \
	VPUNPCKHDQ y, x, x \
	VPMAXUD    t, x, x

#define FOURS(x, y, t) \
	VPUNPCKLQDQ y, x, t \
	VPUNPCKHQDQ y, x, x \
	VPMAXUD     t, x, x

// HALVES leaves the greater of two parts of 128 bits that sel1 and sel2 select from x and y in x.
#define HALVES(sel1, sel2, x, y, t) \
	VSHUFI32X4 sel1, y, x, t \
	VSHUFI32X4 sel2, y, x, x \
	VPMAXUD    t, x, x

// func quantizeAVX512(dst *byte, inv, x *float32, groups int, f *Format, epsilon float32, mask uint32) (done int)
TEXT ·quantizeAVX512(SB), NOSPLIT, $64-56
	MOVQ         dst+0(FP), DI
	MOVQ         inv+8(FP), DX
	MOVQ         x+16(FP), SI
	MOVQ         groups+24(FP), BX
	MOVQ         f+32(FP), R8
	FORMAT
	VBROADCASTSS epsilon+40(FP), X13
	MOVL         mask+44(FP), AX
	VPBROADCASTD AX, X14
	MOVL         $0x7f7fffff, AX
	VPBROADCASTD AX, X15
	MOVL         $0x3f800000, AX
	VPBROADCASTD AX, X18
	VMOVDQU32    fours<>(SB), Z19
	MOVQ         SI, R13
	XORL         R9, R9
	XORL         R10, R10

group:
	XORL        R11, R11
	TESTQ       BX, BX
	JEQ         found
	GREATEROF(0, Z0, Z4)
	GREATEROF(512, Z1, Z5)
	GREATEROF(1024, Z2, Z6)
	GREATEROF(1536, Z3, Z7)
	PAIRS(Z0, Z1, Z4)
	PAIRS(Z2, Z3, Z5)
	FOURS(Z0, Z2, Z4)
	HALVES($0x44, $0xee, Z0, Z0, Z1)
	HALVES($0x88, $0xdd, Z0, Z0, Z1)
	VPCMPUD     $5, X17, X0, K1
	KORTESTW    K1, K1
	JNE         special
	VMAXPS      X13, X0, X0
	VPTESTNMD   X0, X0, K1
	VDIVPS      X0, X21, X1
	VMINPS      X15, X1, X1
	VPANDD      X14, X1, X1
	VMOVAPS     X18, K1, X1
	VPERMD      Z1, Z19, Z23
	VDIVPS      X1, X18, X1
	VMOVUPS     X1, (DX)
	ADDQ        $16, DX
	ADDQ        $(4*GROUP), R13
	DECQ        BX
	INCQ        R11
	JMP         found

special:
	XORL BX, BX

found:
	ROUNDGROUP
	MOVQ R10, done+48(FP)
	VZEROUPPER
	RET

// func quantizeE8M0AVX512(dst, codes *byte, x *float32, groups int, f *Format, bias int32) (done int)
TEXT ·quantizeE8M0AVX512(SB), NOSPLIT, $64-56
	MOVQ         dst+0(FP), DI
	MOVQ         codes+8(FP), DX
	MOVQ         x+16(FP), SI
	MOVQ         groups+24(FP), BX
	MOVQ         f+32(FP), R8
	FORMAT
	MOVL         bias+40(FP), AX
	VPBROADCASTD AX, Z18
	MOVL         $0x1fffff, AX
	VPBROADCASTD AX, Z19
	MOVL         $254, AX
	VPBROADCASTD AX, Z20
	VPXORD       Z24, Z24, Z24
	MOVQ         SI, R13
	XORL         R9, R9
	XORL         R10, R10

group:
	XORL      R11, R11
	TESTQ     BX, BX
	JEQ       found
	GREATER(0, Z0, Z30)
	GREATER(128, Z1, Z31)
	GREATER(256, Z2, Z30)
	GREATER(384, Z3, Z31)
	GREATER(512, Z4, Z30)
	GREATER(640, Z5, Z31)
	GREATER(768, Z6, Z30)
	GREATER(896, Z7, Z31)
	GREATER(1024, Z8, Z30)
	GREATER(1152, Z9, Z31)
	GREATER(1280, Z10, Z30)
	GREATER(1408, Z11, Z31)
	GREATER(1536, Z12, Z30)
	GREATER(1664, Z13, Z31)
	GREATER(1792, Z14, Z30)
	GREATER(1920, Z15, Z31)
	PAIRS(Z0, Z1, Z30)
	PAIRS(Z2, Z3, Z31)
	PAIRS(Z4, Z5, Z30)
	PAIRS(Z6, Z7, Z31)
	PAIRS(Z8, Z9, Z30)
	PAIRS(Z10, Z11, Z31)
	PAIRS(Z12, Z13, Z30)
	PAIRS(Z14, Z15, Z31)
	FOURS(Z0, Z2, Z30)
	FOURS(Z4, Z6, Z31)
	FOURS(Z8, Z10, Z30)
	FOURS(Z12, Z14, Z31)
	HALVES($0x44, $0xee, Z0, Z4, Z30)
	HALVES($0x44, $0xee, Z8, Z12, Z31)
	HALVES($0x88, $0xdd, Z0, Z8, Z30)
	VPCMPUD   $5, Z17, Z0, K1
	KORTESTW  K1, K1
	JNE       special
	VPADDD    Z19, Z0, Z0
	VPSRLD    $23, Z0, Z0
	VPSUBD    Z18, Z0, Z0
	VPMAXSD   Z24, Z0, Z0
	VPMOVDB   Z0, (DX)
	VPSUBD    Z0, Z20, Z0
	VPSLLD    $23, Z0, Z23
	ADDQ      $16, DX
	ADDQ      $(4*GROUP), R13
	DECQ      BX
	INCQ      R11
	JMP       found

special:
	XORL BX, BX

found:
	ROUNDGROUP
	MOVQ R10, done+48(FP)
	VZEROUPPER
	RET
