//go:build !noasm

#include "textflag.h"
#include "format_avx512_amd64.h"

#define AMAXSTEP \
	AMAXOF((SI), Z0, Z1)   \
	AMAXOF(64(SI), Z2, Z3)

#define AMAXHALF AMAXOF((SI), Z0, Z1)

#define FETCHFOUR \
	PREFETCHT0 AHEAD(SI)     \
	PREFETCHT0 AHEAD+64(SI)  \
	PREFETCHT0 AHEAD+128(SI) \
	PREFETCHT0 AHEAD+192(SI)

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
	ENCODEFOUR(nan)

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
