//go:build !noasm

#include "textflag.h"

// The constants of exp_generic.go as bit patterns.
DATA expTable<>+0(SB)/4, $0xc2aeac4f  // expLow
DATA expTable<>+4(SB)/4, $0x42b20000  // expHigh
DATA expTable<>+8(SB)/4, $0x3fb8aa3b  // log2e
DATA expTable<>+12(SB)/4, $0x3f310000 // ln2High
DATA expTable<>+16(SB)/4, $0x3ae42ff0 // ln2Low
DATA expTable<>+20(SB)/4, $0x3efffffe // expC2
DATA expTable<>+24(SB)/4, $0x3e2aaa48 // expC3
DATA expTable<>+28(SB)/4, $0x3d2aac7a // expC4
DATA expTable<>+32(SB)/4, $0x3c091d38 // expC5
DATA expTable<>+36(SB)/4, $0x3ab511a9 // expC6
DATA expTable<>+40(SB)/4, $0x3f800000 // 1
DATA expTable<>+44(SB)/4, $0x4b400000 // roundMagic
DATA expTable<>+48(SB)/4, $0x7f800000 // +Inf
DATA expTable<>+52(SB)/4, $0x7f7fffff // the largest finite number
GLOBL expTable<>(SB), RODATA|NOPTR, $56

#define MASK \
	MOVL  $1, AX   \
	SHLL  CX, AX   \
	DECL  AX       \
	KMOVW AX, K1

#define CONSTANTS \
	LEAQ         expTable<>(SB), AX \
	VBROADCASTSS 0(AX), Z20  \
	VBROADCASTSS 4(AX), Z21  \
	VBROADCASTSS 8(AX), Z22  \
	VBROADCASTSS 12(AX), Z23 \
	VBROADCASTSS 16(AX), Z24 \
	VBROADCASTSS 20(AX), Z25 \
	VBROADCASTSS 24(AX), Z26 \
	VBROADCASTSS 28(AX), Z27 \
	VBROADCASTSS 32(AX), Z28 \
	VBROADCASTSS 36(AX), Z29 \
	VBROADCASTSS 40(AX), Z30 \
	VBROADCASTSS 44(AX), Z19

// EXP replaces x by its exponential; n, p, s and k are scratch. The comparison is
// "not less than", so NaN passes; the minimum returns its last source for NaN.
#define EXP(x, n, p, s, k) \
	VCMPPS       $0x15, Z20, x, k \
	VMINPS       x, Z21, x        \
	VMOVAPS      Z19, n           \
	VFMADD231PS  Z22, x, n        \
	VSUBPS       Z19, n, n        \
	VFNMADD231PS Z23, n, x        \
	VFNMADD231PS Z24, n, x        \
	VMOVAPS      Z29, p           \
	VFMADD213PS  Z28, x, p        \
	VFMADD213PS  Z27, x, p        \
	VFMADD213PS  Z26, x, p        \
	VFMADD213PS  Z25, x, p        \
	VMULPS       x, x, s          \
	VFMADD213PS  x, s, p          \
	VADDPS       Z30, p, p        \
	VSCALEFPS.Z  n, p, k, x

// AHEAD prefetches what a loop over 128 bytes will need. Because of the long arithmetic
// the processor alone does not look far enough ahead, above all for the lines that it
// writes.
#define FAR 1024
#define AHEAD(p) \
	PREFETCHT0 FAR(p) \
	PREFETCHT0 FAR+64(p)

// func expSumAVX512(dst, x []float32, shift float32) float32
TEXT ·expSumAVX512(SB), NOSPLIT, $0-60
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), Z31
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	CONSTANTS

expsum32:
	CMPQ CX, $32
	JLT  expsum16
	VMOVUPS 0(SI), Z0
	VMOVUPS 64(SI), Z4
	VSUBPS  Z31, Z0, Z0
	VSUBPS  Z31, Z4, Z4
	EXP(Z0, Z1, Z2, Z3, K2)
	EXP(Z4, Z5, Z6, Z7, K3)
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z4, 64(DI)
	VADDPS  Z0, Z16, Z16
	VADDPS  Z4, Z17, Z17
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  expsum32

expsum16:
	CMPQ CX, $16
	JLT  expsum1
	VMOVUPS (SI), Z0
	VSUBPS  Z31, Z0, Z0
	EXP(Z0, Z1, Z2, Z3, K2)
	VMOVUPS Z0, (DI)
	VADDPS  Z0, Z16, Z16
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX

expsum1:
	TESTQ CX, CX
	JEQ   expsum0
	MASK
	VMOVUPS.Z (SI), K1, Z0
	VSUBPS    Z31, Z0, Z0
	EXP(Z0, Z1, Z2, Z3, K2)
	VMOVUPS   Z0, K1, (DI)
	VADDPS    Z0, Z17, K1, Z17

expsum0:
	VADDPS        Z17, Z16, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	VMOVHLPS      X0, X0, X1
	VADDPS        X1, X0, X0
	VMOVSHDUP     X0, X1
	VADDSS        X1, X0, X0
	VMOVSS        X0, ret+56(FP)
	VZEROUPPER
	RET

// func expScaleAVX512(dst, x []float32, shift, a float32)
TEXT ·expScaleAVX512(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), Z31
	VBROADCASTSS a+52(FP), Z18
	CONSTANTS

expscale32:
	CMPQ CX, $32
	JLT  expscale16
	VMOVUPS 0(SI), Z0
	VMOVUPS 64(SI), Z4
	AHEAD(DI)
	AHEAD(SI)
	VSUBPS  Z31, Z0, Z0
	VSUBPS  Z31, Z4, Z4
	EXP(Z0, Z1, Z2, Z3, K2)
	EXP(Z4, Z5, Z6, Z7, K3)
	VMULPS  Z18, Z0, Z0
	VMULPS  Z18, Z4, Z4
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z4, 64(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  expscale32

expscale16:
	CMPQ CX, $16
	JLT  expscale1
	VMOVUPS (SI), Z0
	VSUBPS  Z31, Z0, Z0
	EXP(Z0, Z1, Z2, Z3, K2)
	VMULPS  Z18, Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX

expscale1:
	TESTQ CX, CX
	JEQ   expscale0
	MASK
	VMOVUPS.Z (SI), K1, Z0
	VSUBPS    Z31, Z0, Z0
	EXP(Z0, Z1, Z2, Z3, K2)
	VMULPS    Z18, Z0, Z0
	VMOVUPS   Z0, K1, (DI)

expscale0:
	VZEROUPPER
	RET

#define LOGISTICCONSTANTS \
	CONSTANTS                \
	VBROADCASTSS 48(AX), Z18

// LOGISTIC replaces x by the logistic function of −x; n, p, s and k are scratch. The
// reciprocal of d = 1 + eˣ is refined once, which does not work for an infinite d;
// NaN passes.
#define LOGISTIC(x, n, p, s, k) \
	EXP(x, n, p, s, k)              \
	RECIPROCAL(x, n, p, k)
#define RECIPROCAL(x, n, p, k) \
	VADDPS         Z30, x, x        \
	VCMPPS         $4, Z18, x, k    \
	VRCP14PS       x, n             \
	VMOVAPS        Z30, p           \
	VFNMADD231PS   n, x, p          \
	VFMADD213PS    n, n, p          \
	VMOVAPS.Z      p, k, x

// SIGMOID replaces x by its logistic function; Z31 is zero.
#define SIGMOID(x, n, p, s, k) \
	VSUBPS x, Z31, x        \
	LOGISTIC(x, n, p, s, k)

// func sigmoidAVX512(dst, x []float32)
TEXT ·sigmoidAVX512(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	LOGISTICCONSTANTS
	VPXORD Z31, Z31, Z31

sigmoid16:
	CMPQ CX, $16
	JLT  sigmoid1
	VMOVUPS (SI), Z0
	SIGMOID(Z0, Z1, Z2, Z3, K2)
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  sigmoid16

sigmoid1:
	TESTQ CX, CX
	JEQ   sigmoid0
	MASK
	VMOVUPS.Z (SI), K1, Z0
	SIGMOID(Z0, Z1, Z2, Z3, K2)
	VMOVUPS   Z0, K1, (DI)

sigmoid0:
	VZEROUPPER
	RET

// GATECONSTANTS broadcasts Linear and its negative to Z15 and Z31.
#define GATECONSTANTS(linear) \
	LOGISTICCONSTANTS          \
	VPXORD       Z16, Z16, Z16 \
	VBROADCASTSS linear, Z15   \
	VSUBPS       Z15, Z16, Z31

// CUBICCONSTANTS broadcasts −Cubic, 3·Cubic and the largest finite number, too.
#define CUBICCONSTANTS(linear, cubic) \
	GATECONSTANTS(linear)      \
	VBROADCASTSS cubic, Z14    \
	VSUBPS       Z14, Z16, Z17 \
	VSUBPS       Z17, Z14, Z13 \
	VADDPS       Z14, Z13, Z14 \
	VBROADCASTSS 52(AX), Z16

// LINEAR computes −u from a to x and leaves u′ in Z15; CUBIC computes both, u′ to q.
#define LINEAR(a, x, q) VMULPS a, Z31, x
#define CUBIC(a, x, q) \
	VMULPS      a, a, q     \
	VMINPS      Z16, q, q   \
	VMOVAPS     Z31, x      \
	VFMADD231PS q, Z17, x   \
	VMULPS      a, x, x     \
	VFMADD213PS Z15, Z14, q

// GATE stores a·σ(u)·b, with a at SI and b at DX.
#define GATE(U) \
gate32:                            \
	CMPQ CX, $32                   \
	JLT  gate16                    \
	VMOVUPS 0(SI), Z8              \
	VMOVUPS 64(SI), Z9             \
	AHEAD(DI)                      \
	AHEAD(SI)                      \
	AHEAD(DX)                      \
	U(Z8, Z0, Z10)                 \
	U(Z9, Z4, Z11)                 \
	LOGISTIC(Z0, Z1, Z2, Z3, K2)   \
	LOGISTIC(Z4, Z5, Z6, Z7, K3)   \
	VMULPS  Z8, Z0, Z0             \
	VMULPS  Z9, Z4, Z4             \
	VMULPS  0(DX), Z0, Z0          \
	VMULPS  64(DX), Z4, Z4         \
	VMOVUPS Z0, 0(DI)              \
	VMOVUPS Z4, 64(DI)             \
	ADDQ $128, SI                  \
	ADDQ $128, DX                  \
	ADDQ $128, DI                  \
	SUBQ $32, CX                   \
	JMP  gate32                    \
gate16:                            \
	CMPQ CX, $16                   \
	JLT  gate1                     \
	VMOVUPS (SI), Z8               \
	U(Z8, Z0, Z10)                 \
	LOGISTIC(Z0, Z1, Z2, Z3, K2)   \
	VMULPS  Z8, Z0, Z0             \
	VMULPS  (DX), Z0, Z0           \
	VMOVUPS Z0, (DI)               \
	ADDQ $64, SI                   \
	ADDQ $64, DX                   \
	ADDQ $64, DI                   \
	SUBQ $16, CX                   \
gate1:                             \
	TESTQ CX, CX                   \
	JEQ   gate0                    \
	MASK                           \
	VMOVUPS.Z (SI), K1, Z8         \
	VMOVUPS.Z (DX), K1, Z9         \
	U(Z8, Z0, Z10)                 \
	LOGISTIC(Z0, Z1, Z2, Z3, K2)   \
	VMULPS    Z8, Z0, Z0           \
	VMULPS    Z9, Z0, Z0           \
	VMOVUPS   Z0, K1, (DI)         \
gate0:                             \
	VZEROUPPER                     \
	RET

// func gateAVX512(dst, a, b []float32, linear float32)
TEXT ·gateAVX512(SB), NOSPLIT, $0-76
	MOVQ dst_base+0(FP), DI
	MOVQ a_base+24(FP), SI
	MOVQ a_len+32(FP), CX
	MOVQ b_base+48(FP), DX
	GATECONSTANTS(linear+72(FP))
	GATE(LINEAR)

// func gateCubicAVX512(dst, a, b []float32, linear, cubic float32)
TEXT ·gateCubicAVX512(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ a_base+24(FP), SI
	MOVQ a_len+32(FP), CX
	MOVQ b_base+48(FP), DX
	CUBICCONSTANTS(linear+72(FP), cubic+76(FP))
	GATE(CUBIC)

// SLOPE turns −u in s, a, b, dy and u′ in q into da in s and db in dy. The others are
// scratch. 1 − σ(u) is made as e⁻ᵘ·σ(u), which keeps its digits where it is small, and
// where e⁻ᵘ is infinite as 0, which a·σ(u) = 0 is multiplied with.
#define SLOPE(s, a, b, dy, q, t, n, p, k) \
	EXP(s, n, p, t, k)         \
	VMOVAPS      s, t          \
	RECIPROCAL(s, n, p, k)     \
	VMULPS.Z     s, t, k, t    \
	VMULPS       s, a, a       \
	VMULPS       q, t, t       \
	VFMADD231PS  a, t, s       \
	VMULPS       dy, b, t      \
	VMULPS       a, dy, dy     \
	VMULPS       t, s, s

// GATEGRAD stores the gradients, da at DI and db at R8, with a at SI, b at DX and dy
// at R9; U leaves u′ in q.
#define GATEGRAD(U, q) \
gategrad16:                        \
	CMPQ CX, $16                   \
	JLT  gategrad1                 \
	VMOVUPS (SI), Z8               \
	VMOVUPS (DX), Z9               \
	VMOVUPS (R9), Z10              \
	PREFETCHT0 FAR(DI)             \
	PREFETCHT0 FAR(R8)             \
	PREFETCHT0 FAR(SI)             \
	PREFETCHT0 FAR(DX)             \
	PREFETCHT0 FAR(R9)             \
	U(Z8, Z0, q)                   \
	SLOPE(Z0, Z8, Z9, Z10, q, Z3, Z1, Z2, K2) \
	VMOVUPS Z0, (DI)               \
	VMOVUPS Z10, (R8)              \
	ADDQ $64, SI                   \
	ADDQ $64, DX                   \
	ADDQ $64, R9                   \
	ADDQ $64, DI                   \
	ADDQ $64, R8                   \
	SUBQ $16, CX                   \
	JMP  gategrad16                \
gategrad1:                         \
	TESTQ CX, CX                   \
	JEQ   gategrad0                \
	MASK                           \
	VMOVUPS.Z (SI), K1, Z8         \
	VMOVUPS.Z (DX), K1, Z9         \
	VMOVUPS.Z (R9), K1, Z10        \
	U(Z8, Z0, q)                   \
	SLOPE(Z0, Z8, Z9, Z10, q, Z3, Z1, Z2, K2) \
	VMOVUPS   Z0, K1, (DI)         \
	VMOVUPS   Z10, K1, (R8)        \
gategrad0:                         \
	VZEROUPPER                     \
	RET

// func gateGradAVX512(da, db, dy, a, b []float32, linear float32)
TEXT ·gateGradAVX512(SB), NOSPLIT, $0-124
	MOVQ da_base+0(FP), DI
	MOVQ db_base+24(FP), R8
	MOVQ dy_base+48(FP), R9
	MOVQ a_base+72(FP), SI
	MOVQ a_len+80(FP), CX
	MOVQ b_base+96(FP), DX
	GATECONSTANTS(linear+120(FP))
	GATEGRAD(LINEAR, Z15)

// func gateGradCubicAVX512(da, db, dy, a, b []float32, linear, cubic float32)
TEXT ·gateGradCubicAVX512(SB), NOSPLIT, $0-128
	MOVQ da_base+0(FP), DI
	MOVQ db_base+24(FP), R8
	MOVQ dy_base+48(FP), R9
	MOVQ a_base+72(FP), SI
	MOVQ a_len+80(FP), CX
	MOVQ b_base+96(FP), DX
	CUBICCONSTANTS(linear+120(FP), cubic+124(FP))
	GATEGRAD(CUBIC, Z11)
