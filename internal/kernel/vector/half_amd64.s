//go:build !noasm

#include "textflag.h"

// Registers: SI source, DI destination, CX elements left.

// WIDE_MASK sets K1 to the CX < 16 elements that are left.
#define WIDE_MASK \
	MOVL  $1, AX \
	SHLL  CX, AX \
	DECL  AX     \
	KMOVW AX, K1

// WIDE_ARGUMENTS fetches slices of any elements.
#define WIDE_ARGUMENTS \
	MOVQ dst_base+0(FP), DI  \
	MOVQ src_base+24(FP), SI \
	MOVQ src_len+32(FP), CX

// func widenBF16AVX512(dst []float32, src []uint16)
TEXT ·widenBF16AVX512(SB), NOSPLIT, $0-48
	WIDE_ARGUMENTS

widenB64:
	CMPQ      CX, $64
	JLT       widenB16
	VPMOVZXWD 0(SI), Z0
	VPMOVZXWD 32(SI), Z1
	VPMOVZXWD 64(SI), Z2
	VPMOVZXWD 96(SI), Z3
	VPSLLD    $16, Z0, Z0
	VPSLLD    $16, Z1, Z1
	VPSLLD    $16, Z2, Z2
	VPSLLD    $16, Z3, Z3
	VMOVUPS   Z0, 0(DI)
	VMOVUPS   Z1, 64(DI)
	VMOVUPS   Z2, 128(DI)
	VMOVUPS   Z3, 192(DI)
	ADDQ      $128, SI
	ADDQ      $256, DI
	SUBQ      $64, CX
	JMP       widenB64

widenB16:
	CMPQ      CX, $16
	JLT       widenB1
	VPMOVZXWD (SI), Z0
	VPSLLD    $16, Z0, Z0
	VMOVUPS   Z0, (DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JMP       widenB16

widenB1:
	TESTQ       CX, CX
	JEQ         widenB0
	WIDE_MASK
	VMOVDQU16.Z (SI), K1, Y0
	VPMOVZXWD   Y0, Z0
	VPSLLD      $16, Z0, Z0
	VMOVUPS     Z0, K1, (DI)

widenB0:
	VZEROUPPER
	RET

// func widenF16AVX512(dst []float32, src []uint16)
TEXT ·widenF16AVX512(SB), NOSPLIT, $0-48
	WIDE_ARGUMENTS

widenH64:
	CMPQ      CX, $64
	JLT       widenH16
	VCVTPH2PS 0(SI), Z0
	VCVTPH2PS 32(SI), Z1
	VCVTPH2PS 64(SI), Z2
	VCVTPH2PS 96(SI), Z3
	VMOVUPS   Z0, 0(DI)
	VMOVUPS   Z1, 64(DI)
	VMOVUPS   Z2, 128(DI)
	VMOVUPS   Z3, 192(DI)
	ADDQ      $128, SI
	ADDQ      $256, DI
	SUBQ      $64, CX
	JMP       widenH64

widenH16:
	CMPQ      CX, $16
	JLT       widenH1
	VCVTPH2PS (SI), Z0
	VMOVUPS   Z0, (DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JMP       widenH16

widenH1:
	TESTQ       CX, CX
	JEQ         widenH0
	WIDE_MASK
	VMOVDQU16.Z (SI), K1, Y0
	VCVTPH2PS   Y0, Z0
	VMOVUPS     Z0, K1, (DI)

widenH0:
	VZEROUPPER
	RET

// ROUND_CONSTANTS sets Z16 to 1, Z17 to half a unit of bfloat16 less one, Z18 to the
// bit of a quiet NaN.
#define ROUND_CONSTANTS \
	MOVL         $1, AX      \
	VPBROADCASTD AX, Z16     \
	MOVL         $0x7fff, AX \
	VPBROADCASTD AX, Z17     \
	MOVL         $0x40, AX   \
	VPBROADCASTD AX, Z18

// ROUND rounds x to bfloat16 in the lower halves of its lanes.
#define ROUND(x, upper, odd) \
	VPSRLD $16, x, upper       \
	VCMPPS $3, x, x, K2        \
	VPANDD Z16, upper, odd     \
	VPADDD Z17, x, x           \
	VPADDD odd, x, x           \
	VPSRLD $16, x, x           \
	VPORD  Z18, upper, K2, x

// func narrowBF16AVX512(dst []uint16, src []float32)
TEXT ·narrowBF16AVX512(SB), NOSPLIT, $0-48
	WIDE_ARGUMENTS
	ROUND_CONSTANTS

narrowB32:
	CMPQ    CX, $32
	JLT     narrowB16
	VMOVUPS 0(SI), Z0
	VMOVUPS 64(SI), Z1
	ROUND(Z0, Z2, Z3)
	ROUND(Z1, Z4, Z5)
	VPMOVDW Z0, 0(DI)
	VPMOVDW Z1, 32(DI)
	ADDQ    $128, SI
	ADDQ    $64, DI
	SUBQ    $32, CX
	JMP     narrowB32

narrowB16:
	CMPQ    CX, $16
	JLT     narrowB1
	VMOVUPS (SI), Z0
	ROUND(Z0, Z2, Z3)
	VPMOVDW Z0, (DI)
	ADDQ    $64, SI
	ADDQ    $32, DI
	SUBQ    $16, CX

narrowB1:
	TESTQ     CX, CX
	JEQ       narrowB0
	WIDE_MASK
	VMOVUPS.Z (SI), K1, Z0
	ROUND(Z0, Z2, Z3)
	VPMOVDW   Z0, K1, (DI)

narrowB0:
	VZEROUPPER
	RET

// func narrowF16AVX512(dst []uint16, src []float32)
TEXT ·narrowF16AVX512(SB), NOSPLIT, $0-48
	WIDE_ARGUMENTS

narrowH32:
	CMPQ      CX, $32
	JLT       narrowH16
	VMOVUPS   0(SI), Z0
	VMOVUPS   64(SI), Z1
	VCVTPS2PH $0, Z0, 0(DI)
	VCVTPS2PH $0, Z1, 32(DI)
	ADDQ      $128, SI
	ADDQ      $64, DI
	SUBQ      $32, CX
	JMP       narrowH32

narrowH16:
	CMPQ      CX, $16
	JLT       narrowH1
	VMOVUPS   (SI), Z0
	VCVTPS2PH $0, Z0, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX

narrowH1:
	TESTQ     CX, CX
	JEQ       narrowH0
	WIDE_MASK
	VMOVUPS.Z (SI), K1, Z0
	VCVTPS2PH $0, Z0, Y0
	VMOVDQU16 Y0, K1, (DI)

narrowH0:
	VZEROUPPER
	RET

// EIGHTS sets R8 to the greatest multiple of eight elements.
#define EIGHTS \
	MOVQ CX, R8  \
	ANDQ $-8, R8

// func widenBF16AVX2(dst []float32, src []uint16) (done int)
TEXT ·widenBF16AVX2(SB), NOSPLIT, $0-56
	WIDE_ARGUMENTS
	EIGHTS
	MOVQ R8, done+48(FP)

someB:
	TESTQ     R8, R8
	JEQ       someB0
	VPMOVZXWD (SI), Y0
	VPSLLD    $16, Y0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, R8
	JMP       someB

someB0:
	VZEROUPPER
	RET

// func widenF16AVX2(dst []float32, src []uint16) (done int)
TEXT ·widenF16AVX2(SB), NOSPLIT, $0-56
	WIDE_ARGUMENTS
	EIGHTS
	MOVQ R8, done+48(FP)

someH:
	TESTQ     R8, R8
	JEQ       someH0
	VCVTPH2PS (SI), Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, R8
	JMP       someH

someH0:
	VZEROUPPER
	RET

// func narrowBF16AVX2(dst []uint16, src []float32) (done int)
TEXT ·narrowBF16AVX2(SB), NOSPLIT, $0-56
	WIDE_ARGUMENTS
	EIGHTS
	MOVQ R8, done+48(FP)
	VPCMPEQD Y8, Y8, Y8
	VPSRLD   $31, Y8, Y5  // 1
	VPSRLD   $17, Y8, Y6  // 0x7fff
	VPSLLD   $6, Y5, Y7   // 0x40

lessB:
	TESTQ        R8, R8
	JEQ          lessB0
	VMOVUPS      (SI), Y0
	VPSRLD       $16, Y0, Y1
	VCMPPS       $3, Y0, Y0, Y2
	VPAND        Y5, Y1, Y3
	VPADDD       Y6, Y0, Y0
	VPADDD       Y3, Y0, Y0
	VPSRLD       $16, Y0, Y0
	VPOR         Y7, Y1, Y1
	VBLENDVPS    Y2, Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW    X1, X0, X0
	VMOVDQU      X0, (DI)
	ADDQ         $32, SI
	ADDQ         $16, DI
	SUBQ         $8, R8
	JMP          lessB

lessB0:
	VZEROUPPER
	RET

// func narrowF16AVX2(dst []uint16, src []float32) (done int)
TEXT ·narrowF16AVX2(SB), NOSPLIT, $0-56
	WIDE_ARGUMENTS
	EIGHTS
	MOVQ R8, done+48(FP)

lessH:
	TESTQ     R8, R8
	JEQ       lessH0
	VMOVUPS   (SI), Y0
	VCVTPS2PH $0, Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $16, DI
	SUBQ      $8, R8
	JMP       lessH

lessH0:
	VZEROUPPER
	RET
