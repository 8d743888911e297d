//go:build !noasm

#include "textflag.h"
#include "e2m1_amd64.h"

#define BROADCASTQ(value, to) \
	MOVQ         value, AX \
	VPBROADCASTQ AX, to

// UP leaves in z the codes of eight numbers in the lowest bits of the upper halves of lanes. A code
// with the part of the way to the next one is the least of 2v, 2+v and 4+v/2, and 7 at most. In
// units of 2⁻³² it is rounded up, as a word is below a part if and only if it is below the integer
// that the part is rounded up to; adding 2³²−1 less the word then carries into the code. The sums
// and the rounding are those of adding a number whose unit is 1 to products that are exact.
#define UP(from, words, z, t) \
	VCVTPS2PD          from, z       \
	VMULPD             Z16, z, z     \
	VPANDQ             Z17, z, z     \
	VMOVAPD            Z21, t        \
	VFMADD231PD.RU_SAE Z18, z, t     \
	VMOVAPD            Z22, Z8       \
	VFMADD231PD.RU_SAE Z19, z, Z8    \
	VFMADD213PD.RU_SAE Z23, Z20, z   \
	VMINPD             t, Z8, t      \
	VMINPD             t, z, z       \
	VMINPD             Z24, z, z     \
	VPMOVZXDQ          words, t      \
	VPSUBQ             t, z, z

// Registers: DI destination, SI source, DX scales, BX words, CX elements left, R8 the factors.

// func encodeE2M1AtRandomAVX512(dst *byte, x *float32, scales *byte, words *uint32, n int, factors
// *[128]float64)
TEXT ·encodeE2M1AtRandomAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ scales+16(FP), DX
	MOVQ words+24(FP), BX
	MOVQ n+32(FP), CX
	MOVQ factors+40(FP), R8
	BROADCASTQ($0x7fffffffffffffff, Z17)
	BROADCASTQ($0x4200000000000000, Z18) // 2³³
	BROADCASTQ($0x41f0000000000000, Z19) // 2³²
	BROADCASTQ($0x41e0000000000000, Z20) // 2³¹
	BROADCASTQ($0x43300000ffffffff, Z21) // 2⁵²+2³²−1
	BROADCASTQ($0x43300002ffffffff, Z22) // with 2
	BROADCASTQ($0x43300004ffffffff, Z23) // with 4
	BROADCASTQ($0x43300007ffffffff, Z24) // with 7
	BROADCAST($0x80000000, Z29)
	VMOVDQU32 e2m1Odd<>(SB), Z30

loop:
	MOVBLZX      (DX), AX
	VBROADCASTSD (R8)(AX*8), Z16
	PREFETCHT0   AHEAD(SI)
	UP((SI), (BX), Z0, Z1)
	UP(32(SI), 32(BX), Z2, Z3)
	VMOVUPS      (SI), Z4
	VCMPPS       $7, Z4, Z4, K1
	VPERMT2D     Z2, Z30, Z0
	VPSLLD       $28, Z0, Z0
	VPTERNLOGD   $0xf8, Z4, Z29, K1, Z0
	VPSRLD       $28, Z0, Z0
	VPSRLQ       $28, Z0, Z1
	VPORQ        Z1, Z0, Z0
	VPMOVQB      Z0, (DI)
	INCQ DX
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $8, DI
	SUBQ $16, CX
	JNZ  loop
	VZEROUPPER
	RET

// The odd elements of two vectors.
DATA e2m1Odd<>+0(SB)/8, $0x0000000300000001
DATA e2m1Odd<>+8(SB)/8, $0x0000000700000005
DATA e2m1Odd<>+16(SB)/8, $0x0000000b00000009
DATA e2m1Odd<>+24(SB)/8, $0x0000000f0000000d
DATA e2m1Odd<>+32(SB)/8, $0x0000001300000011
DATA e2m1Odd<>+40(SB)/8, $0x0000001700000015
DATA e2m1Odd<>+48(SB)/8, $0x0000001b00000019
DATA e2m1Odd<>+56(SB)/8, $0x0000001f0000001d
GLOBL e2m1Odd<>(SB), RODATA|NOPTR, $64
