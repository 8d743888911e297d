//go:build !noasm

#include "textflag.h"

// 2ʲᐟ³² for j < 32.
DATA powerTable<>+0(SB)/8, $0x3f82cd873f800000
DATA powerTable<>+8(SB)/8, $0x3f88980f3f85aac3
DATA powerTable<>+16(SB)/8, $0x3f8ea43a3f8b95c2
DATA powerTable<>+24(SB)/8, $0x3f94f4f03f91c3d3
DATA powerTable<>+32(SB)/8, $0x3f9b8d3a3f9837f0
DATA powerTable<>+40(SB)/8, $0x3fa270433f9ef532
DATA powerTable<>+48(SB)/8, $0x3fa9a15b3fa5fed7
DATA powerTable<>+56(SB)/8, $0x3fb123f63fad583f
DATA powerTable<>+64(SB)/8, $0x3fb8fbaf3fb504f3
DATA powerTable<>+72(SB)/8, $0x3fc12c4d3fbd08a4
DATA powerTable<>+80(SB)/8, $0x3fc9b9be3fc5672a
DATA powerTable<>+88(SB)/8, $0x3fd2a81e3fce248c
DATA powerTable<>+96(SB)/8, $0x3fdbfbb83fd744fd
DATA powerTable<>+104(SB)/8, $0x3fe5b9073fe0ccdf
DATA powerTable<>+112(SB)/8, $0x3fefe4ba3feac0c7
DATA powerTable<>+120(SB)/8, $0x3ffa83b33ff5257d
GLOBL powerTable<>(SB), RODATA|NOPTR, $128

// Of floats: the coefficients of 2ʳ on |r| ≤ 1/64, fitted for least relative error,
// 5·10⁻⁸, with 1 as the first one; 1.5·2¹⁸, which added to a number leaves it rounded
// to 32nds in the low bits; the limits of the scale of a row and of its sum.
DATA sumTable<>+0(SB)/4, $0x3fb8aa3b  // log2e
DATA sumTable<>+4(SB)/4, $0x48c00000  // 1.5·2¹⁸
DATA sumTable<>+8(SB)/4, $0x3e75fdef  // 0.24022649
DATA sumTable<>+12(SB)/4, $0x3f3172c2 // 0.6931573
DATA sumTable<>+16(SB)/4, $0x3f800000 // 1
DATA sumTable<>+20(SB)/4, $0xc7800000 // -65536
DATA sumTable<>+24(SB)/4, $0x42000000 // 32
DATA sumTable<>+28(SB)/4, $0x42c00000 // 96
DATA sumTable<>+32(SB)/4, $0xc2ec0000 // -118
DATA sumTable<>+36(SB)/4, $0x21800000 // 2⁻⁶⁰
DATA sumTable<>+40(SB)/4, $0x7b800000 // 2¹²⁰
GLOBL sumTable<>(SB), RODATA|NOPTR, $44

// Of doubles: 1, 1/log2e, and the coefficients of ln((1+s)/(1-s))/s in powers of s² for
// s ≤ 1/3, the highest first, fitted to within 2·10⁻¹⁰. The logarithms are to the base
// that makes up for the rounding of log2e, instead of e.
DATA logTable<>+0(SB)/8, $0x3ff0000000000000  // 1
DATA logTable<>+8(SB)/8, $0x3fe62e4303f1ff27  // 0.6931471898
DATA logTable<>+16(SB)/8, $0x3fcf39655a34b4dd // 0.2439390841
DATA logTable<>+24(SB)/8, $0x3fcb63e161ec4524 // 0.2139856079
DATA logTable<>+32(SB)/8, $0x3fd25122852993e9 // 0.2862020779
DATA logTable<>+40(SB)/8, $0x3fd999639173b943 // 0.3999871178
DATA logTable<>+48(SB)/8, $0x3fe555559c77a728 // 0.6666667992
DATA logTable<>+56(SB)/8, $0x40000000038ed36e // 2.000000027
GLOBL logTable<>(SB), RODATA|NOPTR, $64

// ADDEXP adds the exponential of x times the scale of the table in Z21 and Z22 to sum;
// k, s and q are scratch. With x·log2e = s + r, s in 32nds of which j are beyond ⌊s⌋,
// that is 2^⌊s⌋·2ʲᐟ³²·2ʳ.
#define ADDEXP(x, k, s, q, sum) \
	VMOVAPS     Z17, k       \
	VFMADD231PS Z16, x, k    \
	VSUBPS      Z17, k, s    \
	VPERMI2PS   Z22, Z21, k  \
	VFMSUB213PS s, Z16, x    \
	VMOVAPS     Z18, q       \
	VFMADD213PS Z19, x, q    \
	VFMADD213PS Z20, x, q    \
	VSCALEFPS   s, k, k      \
	VFMADD231PS k, q, sum

// LOG replaces y by the logarithm of x·2ʸ for a normal x and an integer y; e, m and p
// are scratch.
#define LOG(x, y, e, m, p) \
	VGETEXPPD        x, e            \
	VGETMANTPD       $0, x, m        \
	VADDPD           e, y, y         \
	VSUBPD           Z30, m, x       \
	VADDPD           Z30, m, m       \
	VDIVPD           m, x, x         \
	VMULPD           x, x, m         \
	VBROADCASTSD     16(AX), p       \
	VFMADD213PD.BCST 24(AX), m, p    \
	VFMADD213PD.BCST 32(AX), m, p    \
	VFMADD213PD.BCST 40(AX), m, p    \
	VFMADD213PD.BCST 48(AX), m, p    \
	VFMADD213PD.BCST 56(AX), m, p    \
	VMULPD           p, x, x         \
	VFMADD132PD.BCST 8(AX), x, y

// func logSumExpAVX512(dst *float64, x *float32, rows, cols, pitch int)
//
// A row passes once. Its exponentials are scaled by a power of two taken from its
// first element, which changes no bit as long as nothing leaves the range of float32.
// What a row leaves in the lanes is added up after the last row: at the end of each,
// the latencies could not overlap.
TEXT ·logSumExpAVX512(SB), 0, $1152-40
	MOVQ x+8(FP), R10
	MOVQ rows+16(FP), DX
	MOVQ cols+24(FP), R11
	MOVQ pitch+32(FP), R12
	SHLQ $2, R12
	LEAQ sums-1024(SP), DI
	LEAQ scales-1088(SP), R9
	LEAQ sumTable<>(SB), BX
	LEAQ powerTable<>(SB), AX
	VBROADCASTSS 0(BX), Z16
	VBROADCASTSS 4(BX), Z17
	VBROADCASTSS 8(BX), Z18
	VBROADCASTSS 12(BX), Z19
	VBROADCASTSS 16(BX), Z20
	VBROADCASTSS 20(BX), Z31
	VBROADCASTSS 24(BX), Z30
	VMOVUPS      0(AX), Z23
	VMOVUPS      64(AX), Z24

row:
	MOVQ         R10, SI
	MOVQ         R11, CX
	VBROADCASTSS (SI), Z25
	VFNMADD213PS Z30, Z16, Z25
	VRNDSCALEPS  $0, Z25, Z25
	VMINPS.BCST  28(BX), Z25, Z25
	VMAXPS.BCST  32(BX), Z25, Z25
	VMOVSS       X25, (R9)
	VSCALEFPS    Z25, Z23, Z21
	VSCALEFPS    Z25, Z24, Z22
	VPXORD       Z26, Z26, Z26
	VPXORD       Z27, Z27, Z27

	// Four vectors pass each stage together: otherwise operations that wait for each
	// other fill the processor's queue.
row64:
	CMPQ        CX, $64
	JLT         row16
	VMOVUPS     0(SI), Z0
	VMOVUPS     64(SI), Z1
	VMOVUPS     128(SI), Z2
	VMOVUPS     192(SI), Z3
	VMOVAPS     Z17, Z4
	VMOVAPS     Z17, Z5
	VMOVAPS     Z17, Z6
	VMOVAPS     Z17, Z7
	VFMADD231PS Z16, Z0, Z4
	VFMADD231PS Z16, Z1, Z5
	VFMADD231PS Z16, Z2, Z6
	VFMADD231PS Z16, Z3, Z7
	PREFETCHT0  2048(SI)
	PREFETCHT0  2112(SI)
	VSUBPS      Z17, Z4, Z8
	VSUBPS      Z17, Z5, Z9
	VSUBPS      Z17, Z6, Z10
	VSUBPS      Z17, Z7, Z11
	PREFETCHT0  2176(SI)
	PREFETCHT0  2240(SI)
	VFMSUB213PS Z8, Z16, Z0
	VFMSUB213PS Z9, Z16, Z1
	VFMSUB213PS Z10, Z16, Z2
	VFMSUB213PS Z11, Z16, Z3
	VPERMI2PS   Z22, Z21, Z4
	VPERMI2PS   Z22, Z21, Z5
	VPERMI2PS   Z22, Z21, Z6
	VPERMI2PS   Z22, Z21, Z7
	VMOVAPS     Z18, Z12
	VMOVAPS     Z18, Z13
	VMOVAPS     Z18, Z14
	VMOVAPS     Z18, Z15
	VFMADD213PS Z19, Z0, Z12
	VFMADD213PS Z19, Z1, Z13
	VFMADD213PS Z19, Z2, Z14
	VFMADD213PS Z19, Z3, Z15
	VSCALEFPS   Z8, Z4, Z4
	VSCALEFPS   Z9, Z5, Z5
	VSCALEFPS   Z10, Z6, Z6
	VSCALEFPS   Z11, Z7, Z7
	VFMADD213PS Z20, Z0, Z12
	VFMADD213PS Z20, Z1, Z13
	VFMADD213PS Z20, Z2, Z14
	VFMADD213PS Z20, Z3, Z15
	VFMADD231PS Z4, Z12, Z26
	VFMADD231PS Z5, Z13, Z27
	VFMADD231PS Z6, Z14, Z26
	VFMADD231PS Z7, Z15, Z27
	ADDQ        $256, SI
	SUBQ        $64, CX
	JMP         row64

row16:
	CMPQ   CX, $16
	JLT    row1
	VMOVUPS (SI), Z0
	ADDEXP(Z0, Z1, Z2, Z3, Z26)
	ADDQ   $64, SI
	SUBQ   $16, CX
	JMP    row16

row1:
	TESTQ   CX, CX
	JEQ     row0
	MOVL    $1, AX
	SHLL    CX, AX
	DECL    AX
	KMOVW   AX, K1
	VMOVAPS Z31, Z0
	VMOVUPS (SI), K1, Z0
	ADDEXP(Z0, Z1, Z2, Z3, Z27)

row0:
	VADDPS  Z27, Z26, Z26
	VMOVUPS Z26, (DI)
	ADDQ    $64, DI
	ADDQ    $4, R9
	ADDQ    R12, R10
	DECQ    DX
	JNZ     row

	MOVQ rows+16(FP), DX
	LEAQ sums-1024(SP), DI
	LEAQ totals-1152(SP), R8

fold:
	VMOVUPS       (DI), Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	VMOVHLPS      X0, X0, X1
	VADDPS        X1, X0, X0
	VMOVSHDUP     X0, X1
	VADDSS        X1, X0, X0
	VMOVSS        X0, (R8)
	ADDQ          $64, DI
	ADDQ          $4, R8
	DECQ          DX
	JNZ           fold

	// A sum that may have lost digits, or is none, becomes NaN.
	MOVQ          rows+16(FP), CX
	MOVL          $1, AX
	SHLL          CX, AX
	DECL          AX
	KMOVW         AX, K1
	VMOVUPS.Z     totals-1152(SP), K1, Z0
	VCMPPS.BCST   $13, 36(BX), Z0, K1, K2
	VCMPPS.BCST   $2, 40(BX), Z0, K2, K2
	VPTERNLOGD    $0xff, Z1, Z1, Z1
	VMOVAPS       Z0, K2, Z1
	VPXORD        Z2, Z2, Z2
	VMOVUPS.Z     scales-1088(SP), K1, Z3
	VSUBPS        Z3, Z2, Z2
	LEAQ          logTable<>(SB), AX
	VBROADCASTSD  0(AX), Z30
	VEXTRACTF64X4 $1, Z1, Y3
	VEXTRACTF64X4 $1, Z2, Y4
	VCVTPS2PD     Y1, Z1
	VCVTPS2PD     Y2, Z2
	VCVTPS2PD     Y3, Z3
	VCVTPS2PD     Y4, Z4
	LOG(Z1, Z2, Z5, Z6, Z7)
	LOG(Z3, Z4, Z8, Z9, Z10)
	MOVQ          dst+0(FP), DI
	VMOVUPD       Z2, K1, (DI)
	KSHIFTRW      $8, K1, K1
	VMOVUPD       Z4, K1, 64(DI)
	VZEROUPPER
	RET
