// Conversions from and to 16 bits for vectors of any width: a file that includes this one has
// included the header of its instruction set, and defines the names of the functions and
//
//	CONSTANTS              prepares for ROUND
//	ROUND(x, upper, t)     rounds x to bfloat16 in the lower halves of its lanes
//	PUTHALF(v, x, mem)     stores the lower halves of the lanes of v, whose first ones are in x
//	WIDENTAIL(from)        converts the elements that are left, if there are masks for halves
//	NARROWBTAIL            does so for bfloat16, and
//	NARROWHTAIL            for binary16
//
// Every function returns how many elements it has converted: those of whole vectors at least.
// Registers: SI source, DI destination, CX elements left.

#define ARGUMENTS \
	MOVQ dst_base+0(FP), DI  \
	MOVQ src_base+24(FP), SI \
	MOVQ src_len+32(FP), CX

#define RETURN \
	MOVQ src_len+32(FP), AX \
	SUBQ CX, AX             \
	MOVQ AX, done+48(FP)    \
	VZEROUPPER              \
	RET

#define FROMBF16(mem, v) \
	VPMOVZXWD mem, v    \
	VPSLLD    $16, v, v
#define FROMF16(mem, v) VCVTPH2PS mem, v

#define WIDEN(from) \
four:                                 \
	CMPQ    CX, $(4*LANES)            \
	JLT     one                       \
	from((0*LANES)(SI), V0)           \
	from((2*LANES)(SI), V1)           \
	from((4*LANES)(SI), V2)           \
	from((6*LANES)(SI), V3)           \
	VMOVUPS V0, (0*LANES)(DI)         \
	VMOVUPS V1, (4*LANES)(DI)         \
	VMOVUPS V2, (8*LANES)(DI)         \
	VMOVUPS V3, (12*LANES)(DI)        \
	ADDQ    $(8*LANES), SI            \
	ADDQ    $(16*LANES), DI           \
	SUBQ    $(4*LANES), CX            \
	JMP     four                      \
one:                                  \
	CMPQ    CX, $LANES                \
	JLT     tail                      \
	from((SI), V0)                    \
	VMOVUPS V0, (DI)                  \
	ADDQ    $(2*LANES), SI            \
	ADDQ    $(4*LANES), DI            \
	SUBQ    $LANES, CX                \
	JMP     one                       \
tail:                                 \
	WIDENTAIL(from)                   \
	RETURN

// func widenBF16(dst []float32, src []uint16) (done int)
TEXT WIDENBF16(SB), NOSPLIT, $0-56
	ARGUMENTS
	WIDEN(FROMBF16)

// func widenF16(dst []float32, src []uint16) (done int)
TEXT WIDENF16(SB), NOSPLIT, $0-56
	ARGUMENTS
	WIDEN(FROMF16)

// func narrowBF16(dst []uint16, src []float32) (done int)
TEXT NARROWBF16(SB), NOSPLIT, $0-56
	ARGUMENTS
	CONSTANTS

narrowB2:
	CMPQ    CX, $(2*LANES)
	JLT     narrowB1
	VMOVUPS (0*LANES)(SI), V0
	VMOVUPS (4*LANES)(SI), V1
	ROUND(V0, V2, V3)
	ROUND(V1, V4, V5)
	PUTHALF(V0, X0, (0*LANES)(DI))
	PUTHALF(V1, X1, (2*LANES)(DI))
	ADDQ    $(8*LANES), SI
	ADDQ    $(4*LANES), DI
	SUBQ    $(2*LANES), CX
	JMP     narrowB2

narrowB1:
	CMPQ    CX, $LANES
	JLT     narrowBTail
	VMOVUPS (SI), V0
	ROUND(V0, V2, V3)
	PUTHALF(V0, X0, (DI))
	ADDQ    $(4*LANES), SI
	ADDQ    $(2*LANES), DI
	SUBQ    $LANES, CX

narrowBTail:
	NARROWBTAIL
	RETURN

// func narrowF16(dst []uint16, src []float32) (done int)
TEXT NARROWF16(SB), NOSPLIT, $0-56
	ARGUMENTS

narrowH2:
	CMPQ      CX, $(2*LANES)
	JLT       narrowH1
	VMOVUPS   (0*LANES)(SI), V0
	VMOVUPS   (4*LANES)(SI), V1
	VCVTPS2PH $0, V0, (0*LANES)(DI)
	VCVTPS2PH $0, V1, (2*LANES)(DI)
	ADDQ      $(8*LANES), SI
	ADDQ      $(4*LANES), DI
	SUBQ      $(2*LANES), CX
	JMP       narrowH2

narrowH1:
	CMPQ      CX, $LANES
	JLT       narrowHTail
	VMOVUPS   (SI), V0
	VCVTPS2PH $0, V0, (DI)
	ADDQ      $(4*LANES), SI
	ADDQ      $(2*LANES), DI
	SUBQ      $LANES, CX

narrowHTail:
	NARROWHTAIL
	RETURN
