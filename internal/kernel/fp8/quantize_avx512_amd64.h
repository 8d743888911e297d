// The loops for rows of one dtype with AVX-512: a file that includes this one has included
// format_avx512_amd64.h and defines the names of the functions and
//
//	SIZE                      the bytes of an element
//	AHEAD                     how far ahead they prefetch: past what the first-level cache holds
//	FETCHFOUR                 prefetches four vectors AHEAD of SI
//	LOAD(i, to)               loads vector i at SI
//	PRODUCT(i, scale, to)     multiplies vector i at SI
//	GREATERS(i, to, t)        leaves the greatest magnitudes of 32 elements at R13, as 16 integers,
//	                          in to
//	SIGNSOF                   prepares Z31 for GREATERS
//	MAXIMUM                   is the instruction for the maximum of such integers
//	WHOLE(x, t)               makes float32 of them
//
// Integers are compared so that a NaN or an infinity is seen. The scales of the next 512 elements
// are found before the last 512 are rounded, because a scale takes longer than the instructions
// that wait for it can bridge.

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

// func encodeAmax(dst *byte, x *float32, n int, f *Format, scale float32) (amax float32)
TEXT ENCODEAMAX(SB), NOSPLIT, $0-44
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
	FETCHFOUR
	LOAD(0, Z1)
	LOAD(1, Z2)
	LOAD(2, Z3)
	LOAD(3, Z4)
	AMAXOF(Z1, Z14, Z5)
	AMAXOF(Z2, Z15, Z6)
	AMAXOF(Z3, Z14, Z7)
	AMAXOF(Z4, Z15, Z8)
	VMULPS Z1, Z0, Z1
	VMULPS Z2, Z0, Z2
	VMULPS Z3, Z0, Z3
	VMULPS Z4, Z0, Z4
	ENCODEFOUR(rest)
	ADDQ $(64*SIZE), SI
	ADDQ $64, DI
	JMP  fours

rest:
	ADDQ $64, CX
	JEQ  done

single:
	LOAD(0, Z1)
	AMAXOF(Z1, Z14, Z2)
	VMULPS Z1, Z0, Z1
	ENCODE((DI))
	ADDQ   $(16*SIZE), SI
	ADDQ   $16, DI
	SUBQ   $16, CX
	JNZ    single

done:
	VMAXPS Z15, Z14, Z0
	GREATEST
	VMOVSS X0, amax+40(FP)
	VZEROUPPER
	RET

// Registers: R13 where scales are found, BX how often they will be, R11 whether they were now, R9
// whether they were before, R10 how often elements were rounded, Z23 the scales of 16 blocks of 32
// elements.

#define GROUP 512

// OPERANDS loads what the loops for blocks have in common.
#define OPERANDS(scales) \
	MOVQ dst+0(FP), DI     \
	MOVQ scales+8(FP), DX  \
	MOVQ x+16(FP), SI      \
	MOVQ groups+24(FP), BX \
	MOVQ f+32(FP), R8      \
	MOVQ SI, R13           \
	XORL R9, R9            \
	XORL R10, R10          \
	FORMAT                 \
	SIGNSOF

// ROUNDGROUP follows a group whose scales were found; it rounds the one before and ends the loop.
#define ROUNDGROUP \
	ADDQ    $16, DX               \
	ADDQ    $(SIZE*GROUP), R13    \
	DECQ    BX                    \
	INCQ    R11                   \
	JMP     found                 \
special: \
	XORL    BX, BX                \
found: \
	TESTQ   R9, R9                \
	JEQ     first                 \
	LEAQ    scales-64(SP), R12    \
	MOVQ    $(GROUP/64), CX       \
round: \
	FETCHFOUR                     \
	VBROADCASTSS (R12), Z0        \
	VBROADCASTSS 4(R12), Z30      \
	PRODUCT(0, Z0, Z1)            \
	PRODUCT(1, Z0, Z2)            \
	PRODUCT(2, Z30, Z3)           \
	PRODUCT(3, Z30, Z4)           \
	VPANDD       Z16, Z1, Z5      \
	VPANDD       Z16, Z2, Z6      \
	VPANDD       Z16, Z3, Z7      \
	VPANDD       Z16, Z4, Z8      \
	STOREFOUR                     \
	ADDQ         $(64*SIZE), SI   \
	ADDQ         $64, DI          \
	ADDQ         $8, R12          \
	DECQ         CX               \
	JNZ          round            \
	INCQ         R10              \
first: \
	VMOVUPS      Z23, scales-64(SP) \
	MOVQ         R11, R9          \
	TESTQ        R9, R9           \
	JNZ          group            \
	MOVQ         R10, done+48(FP) \
	VZEROUPPER                    \
	RET

// BLOCK leaves the greatest magnitudes of 128 elements in r.
#define BLOCK(i, r, t) \
	GREATERS(i, r, t)        \
	GREATERS(i+1, Z8, t)     \
	GREATERS(i+2, Z9, t)     \
	GREATERS(i+3, Z10, t)    \
	MAXIMUM Z8, r, r         \
	MAXIMUM Z9, Z10, Z9      \
	MAXIMUM Z9, r, r

// PAIRS leaves the greater of two doublewords of each of x and y in x, by turns, and FOURS those of
// two such vectors.
#define PAIRS(x, y, t) \
	VPUNPCKLDQ y, x, t \
	VPUNPCKHDQ y, x, x \
	MAXIMUM    t, x, x

#define FOURS(x, y, t) \
	VPUNPCKLQDQ y, x, t \
	VPUNPCKHQDQ y, x, x \
	MAXIMUM     t, x, x

// HALVES leaves the greater of two parts of 128 bits that sel1 and sel2 select from x and y in x.
#define HALVES(sel1, sel2, x, y, t) \
	VSHUFI32X4 sel1, y, x, t \
	VSHUFI32X4 sel2, y, x, x \
	MAXIMUM    t, x, x

// func quantize(dst *byte, inv, x *float32, groups int, f *Format, epsilon float32, mask uint32) (done int)
TEXT QUANTIZE(SB), NOSPLIT, $64-56
	OPERANDS(inv)
	VBROADCASTSS epsilon+40(FP), X13
	MOVL         mask+44(FP), AX
	VPBROADCASTD AX, X14
	MOVL         $0x7f7fffff, AX
	VPBROADCASTD AX, X15
	MOVL         $0x3f800000, AX
	VPBROADCASTD AX, X18
	VMOVDQU32    fours<>(SB), Z19

group:
	XORL        R11, R11
	TESTQ       BX, BX
	JEQ         found
	BLOCK(0, Z0, Z4)
	BLOCK(4, Z1, Z5)
	BLOCK(8, Z2, Z6)
	BLOCK(12, Z3, Z7)
	PAIRS(Z0, Z1, Z4)
	PAIRS(Z2, Z3, Z5)
	FOURS(Z0, Z2, Z4)
	HALVES($0x44, $0xee, Z0, Z0, Z1)
	HALVES($0x88, $0xdd, Z0, Z0, Z1)
	WHOLE(Z0, Z1)
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
	ROUNDGROUP

// func quantizeE8M0(dst, codes *byte, x *float32, groups int, f *Format, bias int32) (done int)
TEXT QUANTIZEE8M0(SB), NOSPLIT, $64-56
	OPERANDS(codes)
	MOVL         bias+40(FP), AX
	VPBROADCASTD AX, Z18
	MOVL         $0x1fffff, AX
	VPBROADCASTD AX, Z19
	MOVL         $254, AX
	VPBROADCASTD AX, Z20
	VPXORD       Z24, Z24, Z24

group:
	XORL      R11, R11
	TESTQ     BX, BX
	JEQ       found
	GREATERS(0, Z0, Z30)
	GREATERS(1, Z1, Z23)
	GREATERS(2, Z2, Z30)
	GREATERS(3, Z3, Z23)
	GREATERS(4, Z4, Z30)
	GREATERS(5, Z5, Z23)
	GREATERS(6, Z6, Z30)
	GREATERS(7, Z7, Z23)
	GREATERS(8, Z8, Z30)
	GREATERS(9, Z9, Z23)
	GREATERS(10, Z10, Z30)
	GREATERS(11, Z11, Z23)
	GREATERS(12, Z12, Z30)
	GREATERS(13, Z13, Z23)
	GREATERS(14, Z14, Z30)
	GREATERS(15, Z15, Z23)
	PAIRS(Z0, Z1, Z30)
	PAIRS(Z2, Z3, Z23)
	PAIRS(Z4, Z5, Z30)
	PAIRS(Z6, Z7, Z23)
	PAIRS(Z8, Z9, Z30)
	PAIRS(Z10, Z11, Z23)
	PAIRS(Z12, Z13, Z30)
	PAIRS(Z14, Z15, Z23)
	FOURS(Z0, Z2, Z30)
	FOURS(Z4, Z6, Z23)
	FOURS(Z8, Z10, Z30)
	FOURS(Z12, Z14, Z23)
	HALVES($0x44, $0xee, Z0, Z4, Z30)
	HALVES($0x44, $0xee, Z8, Z12, Z23)
	HALVES($0x88, $0xdd, Z0, Z8, Z30)
	WHOLE(Z0, Z1)
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
	ROUNDGROUP
