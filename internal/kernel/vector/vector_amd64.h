// Sums and arithmetic for vectors of any width: a file that includes this one has included the
// header of its instruction set, and defines the names of the functions and
//
//	MAXTAIL(mem, v, none, t)  raises v to the elements of MASK; t is scratch, none is −Inf
//	WITHIN(x)                 compares x with the bounds in V0 and V1
//	KEPT(y, v)                sets v to y where the last WITHIN was true, to 0 elsewhere
//
// Registers: SI, DX sources, DI destination, CX elements left.

#define ZERO4 \
	VXORPS V0, V0, V0 \
	VXORPS V1, V1, V1 \
	VXORPS V2, V2, V2 \
	VXORPS V3, V3, V3

#define JOIN4(op) \
	op V1, V0, V0 \
	op V3, V2, V2 \
	op V2, V0, V0

#define LOAD4(mem) \
	VMOVUPS (0*LANES)mem, V4  \
	VMOVUPS (4*LANES)mem, V5  \
	VMOVUPS (8*LANES)mem, V6  \
	VMOVUPS (12*LANES)mem, V7

#define STORE4 \
	VMOVUPS V4, (0*LANES)(DI)  \
	VMOVUPS V5, (4*LANES)(DI)  \
	VMOVUPS V6, (8*LANES)(DI)  \
	VMOVUPS V7, (12*LANES)(DI)

// func dot(x, y []float32) float32
TEXT DOT(SB), NOSPLIT, $0-52
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DX
	ZERO4

dot4:
	CMPQ CX, $(4*LANES)
	JLT  dot1
	LOAD4((SI))
	VFMADD231PS (0*LANES)(DX), V4, V0
	VFMADD231PS (4*LANES)(DX), V5, V1
	VFMADD231PS (8*LANES)(DX), V6, V2
	VFMADD231PS (12*LANES)(DX), V7, V3
	ADDQ $(16*LANES), SI
	ADDQ $(16*LANES), DX
	SUBQ $(4*LANES), CX
	JMP  dot4

dot1:
	CMPQ CX, $LANES
	JLT  dotTail
	VMOVUPS     (SI), V4
	VFMADD231PS (DX), V4, V0
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DX
	SUBQ $LANES, CX
	JMP  dot1

dotTail:
	TESTQ CX, CX
	JEQ   dotEnd
	MASK
	TAIL((SI), V4)
	TAIL((DX), V5)
	VFMADD231PS V5, V4, V1

dotEnd:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+48(FP)
	VZEROUPPER
	RET

// REDUCE4 applies an instruction to four vectors.
#define REDUCE4(op) \
	op   (0*LANES)(SI), V0, V0  \
	op   (4*LANES)(SI), V1, V1  \
	op   (8*LANES)(SI), V2, V2  \
	op   (12*LANES)(SI), V3, V3 \
	ADDQ $(16*LANES), SI        \
	SUBQ $(4*LANES), CX

// func sum(x []float32) float32
TEXT SUM(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	ZERO4

sum4:
	CMPQ CX, $(4*LANES)
	JLT  sum1
	REDUCE4(VADDPS)
	JMP  sum4

sum1:
	CMPQ CX, $LANES
	JLT  sumTail
	VADDPS (SI), V0, V0
	ADDQ $(4*LANES), SI
	SUBQ $LANES, CX
	JMP  sum1

sumTail:
	TESTQ CX, CX
	JEQ   sumEnd
	MASK
	TAIL((SI), V4)
	VADDPS V4, V1, V1

sumEnd:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func maximum(x []float32) float32
TEXT MAXIMUM(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVL $0xff800000, AX
	MOVQ AX, X0
	VBROADCASTSS X0, V0
	VMOVAPS V0, V1
	VMOVAPS V0, V2
	VMOVAPS V0, V3
	VMOVAPS V0, V8

max4:
	CMPQ CX, $(4*LANES)
	JLT  max1
	REDUCE4(VMAXPS)
	JMP  max4

max1:
	CMPQ CX, $LANES
	JLT  maxTail
	VMAXPS (SI), V0, V0
	ADDQ $(4*LANES), SI
	SUBQ $LANES, CX
	JMP  max1

maxTail:
	TESTQ CX, CX
	JEQ   maxEnd
	MASK
	MAXTAIL((SI), V1, V8, V4)

maxEnd:
	JOIN4(VMAXPS)
	FOLD(VMAXPS, VMAXSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func axpy(a float32, x, y []float32)
TEXT AXPY(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), V0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI

axpy4:
	CMPQ CX, $(4*LANES)
	JLT  axpy1
	LOAD4((DI))
	VFMADD231PS (0*LANES)(SI), V0, V4
	VFMADD231PS (4*LANES)(SI), V0, V5
	VFMADD231PS (8*LANES)(SI), V0, V6
	VFMADD231PS (12*LANES)(SI), V0, V7
	STORE4
	ADDQ $(16*LANES), SI
	ADDQ $(16*LANES), DI
	SUBQ $(4*LANES), CX
	JMP  axpy4

axpy1:
	CMPQ CX, $LANES
	JLT  axpyTail
	VMOVUPS     (DI), V4
	VFMADD231PS (SI), V0, V4
	VMOVUPS     V4, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  axpy1

axpyTail:
	TESTQ CX, CX
	JEQ   axpyEnd
	MASK
	TAIL((DI), V4)
	TAIL((SI), V5)
	VFMADD231PS V5, V0, V4
	PUTTAIL(V4, (DI))

axpyEnd:
	VZEROUPPER
	RET

// func scale(a float32, dst, x []float32)
TEXT SCALE(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), V0
	MOVQ dst_base+8(FP), DI
	MOVQ x_base+32(FP), SI
	MOVQ x_len+40(FP), CX

scale4:
	CMPQ CX, $(4*LANES)
	JLT  scale1
	VMULPS (0*LANES)(SI), V0, V4
	VMULPS (4*LANES)(SI), V0, V5
	VMULPS (8*LANES)(SI), V0, V6
	VMULPS (12*LANES)(SI), V0, V7
	STORE4
	ADDQ $(16*LANES), SI
	ADDQ $(16*LANES), DI
	SUBQ $(4*LANES), CX
	JMP  scale4

scale1:
	CMPQ CX, $LANES
	JLT  scaleTail
	VMULPS  (SI), V0, V4
	VMOVUPS V4, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  scale1

scaleTail:
	TESTQ CX, CX
	JEQ   scaleEnd
	MASK
	TAIL((SI), V4)
	VMULPS V4, V0, V4
	PUTTAIL(V4, (DI))

scaleEnd:
	VZEROUPPER
	RET

// BINARY applies one instruction to the elements at SI and DX and stores the results at DI.
#define BINARY(op) \
four:                             \
	CMPQ CX, $(4*LANES)           \
	JLT  one                      \
	LOAD4((SI))                   \
	op   (0*LANES)(DX), V4, V4    \
	op   (4*LANES)(DX), V5, V5    \
	op   (8*LANES)(DX), V6, V6    \
	op   (12*LANES)(DX), V7, V7   \
	STORE4                        \
	ADDQ $(16*LANES), SI          \
	ADDQ $(16*LANES), DX          \
	ADDQ $(16*LANES), DI          \
	SUBQ $(4*LANES), CX           \
	JMP  four                     \
one:                              \
	CMPQ CX, $LANES               \
	JLT  tail                     \
	VMOVUPS (SI), V4              \
	op   (DX), V4, V4             \
	VMOVUPS V4, (DI)              \
	ADDQ $(4*LANES), SI           \
	ADDQ $(4*LANES), DX           \
	ADDQ $(4*LANES), DI           \
	SUBQ $LANES, CX               \
	JMP  one                      \
tail:                             \
	TESTQ CX, CX                  \
	JEQ  end                      \
	MASK                          \
	TAIL((SI), V4)                \
	TAIL((DX), V5)                \
	op   V5, V4, V4               \
	PUTTAIL(V4, (DI))             \
end:                              \
	VZEROUPPER                    \
	RET

// func add(dst, x, y []float32)
TEXT ADD(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VADDPS)

// func mul(dst, x, y []float32)
TEXT MUL(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VMULPS)

// func mulSub(dst, x, y []float32, c float32)
TEXT MULSUB(SB), NOSPLIT, $0-76
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	VBROADCASTSS c+72(FP), V0

mulSub2:
	CMPQ CX, $(2*LANES)
	JLT  mulSub1
	VMOVUPS (0*LANES)(DX), V4
	VMOVUPS (4*LANES)(DX), V5
	VSUBPS  V0, V4, V4
	VSUBPS  V0, V5, V5
	VMULPS  (0*LANES)(SI), V4, V4
	VMULPS  (4*LANES)(SI), V5, V5
	VMOVUPS V4, (0*LANES)(DI)
	VMOVUPS V5, (4*LANES)(DI)
	ADDQ $(8*LANES), SI
	ADDQ $(8*LANES), DX
	ADDQ $(8*LANES), DI
	SUBQ $(2*LANES), CX
	JMP  mulSub2

mulSub1:
	CMPQ CX, $LANES
	JLT  mulSubTail
	VMOVUPS (DX), V4
	VSUBPS  V0, V4, V4
	VMULPS  (SI), V4, V4
	VMOVUPS V4, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DX
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX

mulSubTail:
	TESTQ CX, CX
	JEQ   mulSubEnd
	MASK
	TAIL((DX), V4)
	TAIL((SI), V5)
	VSUBPS V0, V4, V4
	VMULPS V5, V4, V4
	PUTTAIL(V4, (DI))

mulSubEnd:
	VZEROUPPER
	RET

// func clamp(dst, x []float32, lo, hi float32)
TEXT CLAMP(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS lo+48(FP), V0
	VBROADCASTSS hi+52(FP), V1

clamp1:
	CMPQ CX, $LANES
	JLT  clampTail
	VMOVUPS (SI), V4
	VMAXPS  V4, V0, V4
	VMINPS  V4, V1, V4
	VMOVUPS V4, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  clamp1

clampTail:
	TESTQ CX, CX
	JEQ   clampEnd
	MASK
	TAIL((SI), V4)
	VMAXPS V4, V0, V4
	VMINPS V4, V1, V4
	PUTTAIL(V4, (DI))

clampEnd:
	VZEROUPPER
	RET

// func keep(dst, y, x []float32, lo, hi float32)
TEXT KEEP(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ y_base+24(FP), DX
	MOVQ x_base+48(FP), SI
	MOVQ x_len+56(FP), CX
	VBROADCASTSS lo+72(FP), V0
	VBROADCASTSS hi+76(FP), V1

keep1:
	CMPQ CX, $LANES
	JLT  keepTail
	VMOVUPS (SI), V4
	WITHIN(V4)
	KEPT((DX), V5)
	VMOVUPS V5, (DI)
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DX
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JMP  keep1

keepTail:
	TESTQ CX, CX
	JEQ   keepEnd
	MASK
	TAIL((SI), V4)
	TAIL((DX), V5)
	WITHIN(V4)
	KEPT(V5, V5)
	PUTTAIL(V5, (DI))

keepEnd:
	VZEROUPPER
	RET
