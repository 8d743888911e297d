// Exponentials and what is built on them for vectors of any width: a file that includes this one
// has included the header of its instruction set, and defines the names of the functions and
//
//	C0, C1, C2, SUM0, SUM1, OK     registers for constants, sums and a comparison
//	EXPCONSTANTS                   prepares for EXP
//	EXP(x, n, p, s, ok)            replaces x by its exponential; the others are scratch
//	LOGISTICCONSTANTS              prepares for LOGISTIC
//	LOGISTIC(x, n, p, s, ok)       replaces x by the logistic function of −x
//	SLOPE(x, rest, n, p, s, ok)    does so, and sets rest to the logistic function of x
//	ADDTAIL(v, sum)                adds the elements of MASK of v
//	GATECONSTANTS(linear)          prepares for LINEAR, and for LOGISTIC and SLOPE
//	CUBICCONSTANTS(linear, cubic)  prepares for CUBIC, and for LOGISTIC and SLOPE
//	LINEAR(a, x, q)                computes −u of a gate from a to x
//	CUBIC(a, x, q)                 computes −u of a gate from a to x, and u′ to q
//	AHEAD(p)                       prefetches what a loop will need
//	EXPSUM2, EXPSCALE2, GATE2(U)   loop over two vectors at a time, if there are registers for it
//
// Registers: SI, DX, R10 sources, DI and R9 destinations, CX elements left; R8 is free for
// constants.

// func expSum(dst, x []float32, shift float32) float32
TEXT EXPSUM(SB), NOSPLIT, $0-60
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), C0
	VXORPS SUM0, SUM0, SUM0
	VXORPS SUM1, SUM1, SUM1
	EXPCONSTANTS

	EXPSUM2

expSum1:
	CMPQ CX, $LANES
	JLT  expSumTail
	VMOVUPS (SI), V0
	VSUBPS  C0, V0, V0
	EXP(V0, V1, V2, V3, OK)
	VMOVUPS V0, (DI)
	VADDPS  V0, SUM0, SUM0
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  expSum1

expSumTail:
	TESTQ CX, CX
	JEQ   expSumEnd
	MASK
	TAIL((SI), V0)
	VSUBPS C0, V0, V0
	EXP(V0, V1, V2, V3, OK)
	PUTTAIL(V0, (DI))
	ADDTAIL(V0, SUM1)

expSumEnd:
	VADDPS SUM1, SUM0, V0
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+56(FP)
	VZEROUPPER
	RET

// func expScale(dst, x []float32, shift, a float32)
TEXT EXPSCALE(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS shift+48(FP), C0
	VBROADCASTSS a+52(FP), C1
	EXPCONSTANTS

	EXPSCALE2

expScale1:
	CMPQ CX, $LANES
	JLT  expScaleTail
	VMOVUPS (SI), V0
	VSUBPS  C0, V0, V0
	EXP(V0, V1, V2, V3, OK)
	VMULPS  C1, V0, V0
	VMOVUPS V0, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  expScale1

expScaleTail:
	TESTQ CX, CX
	JEQ   expScaleEnd
	MASK
	TAIL((SI), V0)
	VSUBPS C0, V0, V0
	EXP(V0, V1, V2, V3, OK)
	VMULPS C1, V0, V0
	PUTTAIL(V0, (DI))

expScaleEnd:
	VZEROUPPER
	RET

// func sigmoid(dst, x []float32)
TEXT SIGMOID(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VXORPS C0, C0, C0
	LOGISTICCONSTANTS

sigmoid1:
	CMPQ CX, $LANES
	JLT  sigmoidTail
	VMOVUPS (SI), V0
	VSUBPS  V0, C0, V0
	LOGISTIC(V0, V1, V2, V3, OK)
	VMOVUPS V0, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  sigmoid1

sigmoidTail:
	TESTQ CX, CX
	JEQ   sigmoidEnd
	MASK
	TAIL((SI), V0)
	VSUBPS V0, C0, V0
	LOGISTIC(V0, V1, V2, V3, OK)
	PUTTAIL(V0, (DI))

sigmoidEnd:
	VZEROUPPER
	RET

// GATELOOP stores a·σ(u)·b, with a at SI and b at DX.
#define GATELOOP(U) \
	GATE2(U)                         \
gate1:                               \
	CMPQ CX, $LANES                  \
	JLT  gateTail                    \
	VMOVUPS (SI), V8                 \
	U(V8, V0, V10)                   \
	LOGISTIC(V0, V1, V2, V3, OK)    \
	VMULPS  V8, V0, V0               \
	VMULPS  (DX), V0, V0             \
	VMOVUPS V0, (DI)                 \
	ADDQ $(4*LANES), SI              \
	ADDQ $(4*LANES), DX              \
	ADDQ $(4*LANES), DI              \
	SUBQ $LANES, CX                  \
	JMP  gate1                       \
gateTail:                            \
	TESTQ CX, CX                     \
	JEQ   gateEnd                    \
	MASK                             \
	TAIL((SI), V8)                   \
	TAIL((DX), V9)                   \
	U(V8, V0, V10)                   \
	LOGISTIC(V0, V1, V2, V3, OK)    \
	VMULPS V8, V0, V0                \
	VMULPS V9, V0, V0                \
	PUTTAIL(V0, (DI))                \
gateEnd:                             \
	VZEROUPPER                       \
	RET

#define GATEARGUMENTS \
	MOVQ dst_base+0(FP), DI \
	MOVQ a_base+24(FP), SI  \
	MOVQ a_len+32(FP), CX   \
	MOVQ b_base+48(FP), DX

// func gate(dst, a, b []float32, linear float32)
TEXT GATE(SB), NOSPLIT, $0-76
	GATEARGUMENTS
	GATECONSTANTS(linear+72(FP))
	GATELOOP(LINEAR)

// func gateCubic(dst, a, b []float32, linear, cubic float32)
TEXT GATECUBIC(SB), NOSPLIT, $0-80
	GATEARGUMENTS
	CUBICCONSTANTS(linear+72(FP), cubic+76(FP))
	GATELOOP(CUBIC)

// GRADIENTS turns −u in V0, a in V8, b in V9, dy in V10 and u′ in q into da in V0 and db in V10.
// 1 − σ(u) keeps its digits where it is small, because SLOPE computes it from e⁻ᵘ.
#define GRADIENTS(q) \
	SLOPE(V0, V3, V1, V2, V4, OK) \
	VMULPS      V0, V8, V8         \
	VMULPS      q, V3, V3          \
	VFMADD231PS V8, V3, V0         \
	VMULPS      V10, V9, V3        \
	VMULPS      V8, V10, V10       \
	VMULPS      V3, V0, V0

// GATEGRADLOOP stores the gradients, da at DI and db at R9, with a at SI, b at DX and dy at R10; U
// leaves u′ in q.
#define GATEGRADLOOP(U, q) \
gateGrad1:                 \
	CMPQ CX, $LANES        \
	JLT  gateGradTail      \
	VMOVUPS (SI), V8       \
	VMOVUPS (DX), V9       \
	VMOVUPS (R10), V10     \
	AHEAD(DI)              \
	AHEAD(R9)              \
	AHEAD(SI)              \
	AHEAD(DX)              \
	AHEAD(R10)             \
	U(V8, V0, V11)         \
	GRADIENTS(q)           \
	VMOVUPS V0, (DI)       \
	VMOVUPS V10, (R9)      \
	ADDQ $(4*LANES), SI    \
	ADDQ $(4*LANES), DX    \
	ADDQ $(4*LANES), R10   \
	ADDQ $(4*LANES), DI    \
	ADDQ $(4*LANES), R9    \
	SUBQ $LANES, CX        \
	JMP  gateGrad1         \
gateGradTail:              \
	TESTQ CX, CX           \
	JEQ   gateGradEnd      \
	MASK                   \
	TAIL((SI), V8)         \
	TAIL((DX), V9)         \
	TAIL((R10), V10)       \
	U(V8, V0, V11)         \
	GRADIENTS(q)           \
	PUTTAIL(V0, (DI))      \
	PUTTAIL(V10, (R9))     \
gateGradEnd:               \
	VZEROUPPER             \
	RET

#define GATEGRADARGUMENTS \
	MOVQ da_base+0(FP), DI   \
	MOVQ db_base+24(FP), R9  \
	MOVQ dy_base+48(FP), R10 \
	MOVQ a_base+72(FP), SI   \
	MOVQ a_len+80(FP), CX    \
	MOVQ b_base+96(FP), DX

// func gateGrad(da, db, dy, a, b []float32, linear float32)
TEXT GATEGRAD(SB), NOSPLIT, $0-124
	GATEGRADARGUMENTS
	GATECONSTANTS(linear+120(FP))
	GATEGRADLOOP(LINEAR, C2)

// func gateGradCubic(da, db, dy, a, b []float32, linear, cubic float32)
TEXT GATEGRADCUBIC(SB), NOSPLIT, $0-128
	GATEGRADARGUMENTS
	CUBICCONSTANTS(linear+120(FP), cubic+124(FP))
	GATEGRADLOOP(CUBIC, V11)
