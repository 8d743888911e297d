// The kernels of norms for vectors of any width: a file that includes this one says in
// V0 to V12 and LANES what a vector is, and defines
//
//	MASK(n)           prepares for the n % LANES elements of a tail
//	TAIL(mem, v)      loads a tail, with zeros after it
//	PUTTAIL(v, mem)   stores a tail
//	FOLD(add, v, y, t) adds up two halves of v in y, with t as scratch, if y is a half
//
// and the names MOMENTS, CENTER and NORMGRAD.

// MOMENTS2 adds LANES elements from at on to two sums, and their squares to two others.
#define MOMENTS2(at, s0, s1, q0, q1, d0, d1) \
	VCVTPS2PD   at(SI), d0             \
	VCVTPS2PD   (at+2*LANES)(SI), d1   \
	PREFETCHT0  at(SI)(R12*4)          \
	VADDPD      d0, s0, s0             \
	VADDPD      d1, s1, s1             \
	VFMADD231PD d0, d0, q0             \
	VFMADD231PD d1, d1, q1

// FOLDPD adds up the elements of v.
#define FOLDPD(v, y, x, ty, tx) \
	FOLD(VADDPD, v, y, ty)   \
	VEXTRACTF128 $1, y, tx   \
	VADDPD       tx, x, x    \
	VUNPCKHPD    x, x, tx    \
	VADDSD       tx, x, x

// func moments(x *float32, n int) (sum, squares float64)
//
// The next row is likely to follow: its elements are fetched ahead, and those of the
// next result by center.
TEXT MOMENTS(SB), NOSPLIT, $0-32
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	MOVQ   CX, R12
	VXORPD V1, V1, V1
	VXORPD V2, V2, V2
	VXORPD V3, V3, V3
	VXORPD V4, V4, V4
	VXORPD V5, V5, V5
	VXORPD V6, V6, V6
	VXORPD V7, V7, V7
	VXORPD V8, V8, V8
	SUBQ   $(2*LANES), CX
	JLT    momentsRest

momentsLoop:
	MOMENTS2(0, V1, V2, V5, V6, V9, V10)
	MOMENTS2(4*LANES, V3, V4, V7, V8, V11, V12)
	ADDQ $(8*LANES), SI
	SUBQ $(2*LANES), CX
	JGE  momentsLoop

momentsRest:
	ADDQ $(2*LANES), CX
	JZ   momentsSum
	MOMENTS2(0, V1, V2, V5, V6, V9, V10)

momentsSum:
	VADDPD V2, V1, V1
	VADDPD V4, V3, V3
	VADDPD V6, V5, V5
	VADDPD V8, V7, V7
	VADDPD V3, V1, V1
	VADDPD V7, V5, V5
	FOLDPD(V1, Y1, X1, Y2, X2)
	FOLDPD(V5, Y5, X5, Y6, X6)
	VMOVSD X1, sum+16(FP)
	VMOVSD X5, squares+24(FP)
	VZEROUPPER
	RET

// CENTERED turns x in place into ((x − mu) − low)·rsigma.
#define CENTERED(x) \
	VSUBPS V0, x, x \
	VSUBPS V1, x, x \
	VMULPS V2, x, x

// func center(y, x, gain, bias *float32, n int, mu, low, rsigma float32)
TEXT CENTER(SB), NOSPLIT, $0-52
	MOVQ         y+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         gain+16(FP), BX
	MOVQ         bias+24(FP), DX
	MOVQ         n+32(FP), CX
	MOVQ         CX, R12
	VBROADCASTSS mu+40(FP), V0
	VBROADCASTSS low+44(FP), V1
	VBROADCASTSS rsigma+48(FP), V2
	ANDQ         $~(LANES-1), CX
	XORL         AX, AX

centerLoop:
	CMPQ        AX, CX
	JGE         centerTail
	VMOVUPS     (SI)(AX*4), V3
	VMOVUPS     (DX)(AX*4), V4
	PREFETCHT0  (DI)(R12*4)
	CENTERED(V3)
	VFMADD231PS (BX)(AX*4), V3, V4
	VMOVUPS     V4, (DI)(AX*4)
	ADDQ        $LANES, AX
	ADDQ        $LANES, R12
	JMP         centerLoop

centerTail:
	MOVQ        n+32(FP), CX
	ANDQ        $(LANES-1), CX
	JZ          centerEnd
	MASK(CX)
	TAIL((SI)(AX*4), V3)
	TAIL((DX)(AX*4), V4)
	TAIL((BX)(AX*4), V5)
	CENTERED(V3)
	VFMADD231PS V5, V3, V4
	PUTTAIL(V4, (DI)(AX*4))

centerEnd:
	VZEROUPPER
	RET

// XHAT turns x in place into x̂, with mu in V0 and rsigma in V1.
#define XHAT(x) \
	VSUBPS V0, x, x \
	VMULPS V1, x, x

// SUMS adds dz·g and its products with x̂ to two sums.
#define SUMS(dz, x, g, sum, products) \
	VMULPS      g, dz, dz   \
	XHAT(x)                 \
	VADDPS      dz, sum, sum \
	VFMADD231PS x, dz, products

#define SUMSAT(at, dz, x, sum, products) \
	VMOVUPS    at(SI)(AX*4), dz \
	VMOVUPS    at(DX)(AX*4), x  \
	PREFETCHT0 at(DI)(AX*4)     \
	SUMS(dz, x, at(BX)(AX*4), sum, products)

// FOLDPS adds up the elements of v.
#define FOLDPS(v, y, x, ty, tx) \
	FOLD(VADDPS, v, y, ty)   \
	VEXTRACTF128 $1, y, tx   \
	VADDPS       tx, x, x    \
	VMOVHLPS     x, x, tx    \
	VADDPS       tx, x, x    \
	VMOVSHDUP    x, tx       \
	VADDSS       tx, x, x

// GRAD turns dz in place into dx, given x̂, with rsigma in V1, the mean of dz·g in V2
// and that of its products with x̂ in V3.
#define GRAD(dz, xhat, g, t) \
	VMOVAPS     V2, t       \
	VFMADD231PS V3, xhat, t \
	VFMSUB132PS g, t, dz    \
	VMULPS      dz, V1, dz

// func normGrad(a *Gradient)
//
// A row passes twice, the first time for the sums. Lines of dx are fetched in the first
// pass, so that stores need not wait for them, those of the row that is likely to follow
// in the second.
TEXT NORMGRAD(SB), NOSPLIT, $16-8
	MOVQ a+0(FP), R9
	MOVQ (Gradient_DX+Rows_Data)(R9), DI
	MOVQ (Gradient_DZ+Rows_Data)(R9), SI
	MOVQ (Gradient_X+Rows_Data)(R9), DX
	MOVQ (Gradient_Add+Rows_Data)(R9), R11
	MOVQ Gradient_G(R9), BX
	MOVQ (Gradient_G+8)(R9), CX
	MOVQ Gradient_DGamma(R9), R8
	MOVQ Gradient_DBeta(R9), R10
	MOVQ Gradient_Mu(R9), R15
	MOVQ Gradient_RSigma(R9), R13
	MOVQ (Gradient_RSigma+8)(R9), AX
	MOVQ AX, rows-8(SP)
	MOVQ CX, AX
	ANDQ $(LANES-1), AX
	MASK(AX)
	ANDQ $~(LANES-1), CX

row:
	VXORPS       V0, V0, V0
	VBROADCASTSS (R13), V1
	TESTQ        R15, R15
	JEQ          sums
	VBROADCASTSS (R15), V0
	ADDQ         $4, R15

sums:
	VXORPS V2, V2, V2
	VXORPS V3, V3, V3
	VXORPS V4, V4, V4
	VXORPS V5, V5, V5
	XORL   AX, AX

sums2:
	LEAQ (2*LANES)(AX), R12
	CMPQ R12, CX
	JGT  sums1
	SUMSAT(0, V6, V7, V2, V3)
	SUMSAT(4*LANES, V8, V9, V4, V5)
	MOVQ R12, AX
	JMP  sums2

sums1:
	CMPQ AX, CX
	JGE  sumsTail
	SUMSAT(0, V6, V7, V2, V3)
	ADDQ $LANES, AX

sumsTail:
	MOVQ  (Gradient_G+8)(R9), R12
	TESTQ $(LANES-1), R12
	JZ    means
	TAIL((SI)(AX*4), V6)
	TAIL((DX)(AX*4), V7)
	TAIL((BX)(AX*4), V8)
	SUMS(V6, V7, V8, V4, V5)

means:
	VADDPS       V5, V3, V3
	FOLDPS(V3, Y3, X3, Y5, X5)
	VXORPS       X6, X6, X6
	VCVTSI2SSQ   R12, X6, X6
	VDIVSS       X6, X3, X3
	VBROADCASTSS X3, V3
	TESTQ        R15, R15
	JEQ          noMean
	VADDPS       V4, V2, V2
	FOLDPS(V2, Y2, X2, Y4, X4)
	VDIVSS       X6, X2, X2
	VBROADCASTSS X2, V2
	JMP          grads

noMean:
	VXORPS V2, V2, V2

grads:
	XORL AX, AX

grad:
	CMPQ        AX, CX
	JGE         gradTail
	VMOVUPS     (SI)(AX*4), V4
	VMOVUPS     (DX)(AX*4), V5
	PREFETCHT0  (SI)(R12*4)
	PREFETCHT0  (DX)(R12*4)
	XHAT(V5)
	VMOVUPS     (R8)(AX*4), V6
	VFMADD231PS V4, V5, V6
	VMOVUPS     V6, (R8)(AX*4)
	TESTQ       R10, R10
	JEQ         gradX
	VADDPS      (R10)(AX*4), V4, V6
	VMOVUPS     V6, (R10)(AX*4)

gradX:
	GRAD(V4, V5, (BX)(AX*4), V6)
	TESTQ   R11, R11
	JEQ     gradPut
	VADDPS  (R11)(AX*4), V4, V4
	PREFETCHT0 (R11)(R12*4)

gradPut:
	VMOVUPS V4, (DI)(AX*4)
	ADDQ    $LANES, AX
	ADDQ    $LANES, R12
	JMP     grad

gradTail:
	MOVQ        (Gradient_G+8)(R9), R12
	TESTQ       $(LANES-1), R12
	JZ          next
	TAIL((SI)(AX*4), V4)
	TAIL((DX)(AX*4), V5)
	TAIL((BX)(AX*4), V7)
	XHAT(V5)
	TAIL((R8)(AX*4), V6)
	VFMADD231PS V4, V5, V6
	PUTTAIL(V6, (R8)(AX*4))
	TESTQ       R10, R10
	JEQ         tailX
	TAIL((R10)(AX*4), V6)
	VADDPS      V6, V4, V6
	PUTTAIL(V6, (R10)(AX*4))

tailX:
	GRAD(V4, V5, V7, V6)
	TESTQ R11, R11
	JEQ   tailPut
	TAIL((R11)(AX*4), V6)
	VADDPS V6, V4, V4

tailPut:
	PUTTAIL(V4, (DI)(AX*4))

next:
	MOVQ  (Gradient_DX+Rows_Pitch)(R9), AX
	LEAQ  (DI)(AX*4), DI
	MOVQ  (Gradient_DZ+Rows_Pitch)(R9), AX
	LEAQ  (SI)(AX*4), SI
	MOVQ  (Gradient_X+Rows_Pitch)(R9), AX
	LEAQ  (DX)(AX*4), DX
	ADDQ  $4, R13
	TESTQ R11, R11
	JEQ   count
	MOVQ  (Gradient_Add+Rows_Pitch)(R9), AX
	LEAQ  (R11)(AX*4), R11

count:
	DECQ rows-8(SP)
	JNZ  row
	VZEROUPPER
	RET
