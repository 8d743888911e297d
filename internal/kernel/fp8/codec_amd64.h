// The loops for vectors of any width: a file that includes this one has included textflag.h and
// defines the names of the functions and
//
//	LANES              the elements of a vector
//	V0 to V4           vectors
//	SIGNS              prepares for what follows
//	AMAXOF(mem, to, t) raises the elements of to to the magnitudes of those in memory
//	AMAXSTEP           does so with V0 and V2 for the next 32 elements
//	AMAXHALF           does so with V0 for the next 16
//	FORMAT             prepares for ENCODE from the format at R8
//	ENCODE(to)         stores V1 as fp8
//	ENCODEFOUR(nan)    stores V1 to V4 as fp8, or goes to nan if there is one
//	FETCHFOUR          prefetches four vectors AHEAD of SI
//	WORDS              prepares for DECODE from the format at R8
//	DECODE(from)       loads fp8 to V1
//	GREATEST           leaves the largest element of V0 in X0
//	EXPONENTS          prepares for CODES, from the bias in AX, and for POWERS
//	CODES              stores the E8M0 codes of the elements at SI, and then their reciprocals there
//	POWERS             stores the numbers of the E8M0 codes at SI
//
// Registers: DI destination, SI source, DX scales, BX blocks left, R9 elements of a block, R10 the
// rest of it, R8 the format.

// AHEAD is how far ahead loops prefetch: past the row that the first-level cache holds.
#define AHEAD 16384

#define EACH \
	MOVQ dst+0(FP), DI    \
	MOVQ x+8(FP), SI      \
	MOVQ scale+16(FP), DX \
	MOVQ n+24(FP), CX     \
	MOVQ f+32(FP), R8

#define ARGUMENTS \
	MOVQ dst+0(FP), DI     \
	MOVQ x+8(FP), SI       \
	MOVQ scale+16(FP), DX  \
	MOVQ blocks+24(FP), BX \
	MOVQ whole+32(FP), R9  \
	MOVQ block+40(FP), R10 \
	MOVQ f+48(FP), R8      \
	SUBQ R9, R10

// func amaxes(dst, x *float32, blocks, whole, block int)
TEXT AMAXES(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ blocks+16(FP), BX
	MOVQ whole+24(FP), R9
	MOVQ block+32(FP), R10
	SUBQ R9, R10
	SIGNS

amaxBlock:
	VXORPS V0, V0, V0
	VXORPS V2, V2, V2
	MOVQ  R9, CX
	SUBQ  $32, CX
	JCS   amaxRest

amaxLoop:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 AHEAD+64(SI)
	AMAXSTEP
	ADDQ       $128, SI
	SUBQ       $32, CX
	JCC        amaxLoop

amaxRest:
	ADDQ       $32, CX
	JEQ        amaxDone
	PREFETCHT0 AHEAD(SI)
	AMAXHALF
	ADDQ       $64, SI

amaxDone:
	VMAXPS V2, V0, V0
	GREATEST
	VMOVSS X0, (DI)
	ADDQ   $4, DI
	LEAQ   (SI)(R10*4), SI
	DECQ   BX
	JNZ    amaxBlock
	VZEROUPPER
	RET

// func raise(dst, x *float32, n int)
TEXT RAISE(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	SIGNS

raiseLoop:
	VMOVUPS (DI), V0
	AMAXOF((SI), V0, V1)
	VMOVUPS V0, (DI)
	ADDQ    $(4*LANES), SI
	ADDQ    $(4*LANES), DI
	SUBQ    $LANES, CX
	JNZ     raiseLoop
	VZEROUPPER
	RET

// func encode(dst *byte, x, scale *float32, blocks, whole, block int, f *Format)
TEXT ENCODEBLOCKS(SB), NOSPLIT, $0-56
	ARGUMENTS
	FORMAT

encodeBlock:
	VBROADCASTSS (DX), V0
	ADDQ         $4, DX
	MOVQ         R9, CX

encodeLoop:
	SUBQ $(4*LANES), CX
	JCS  encodeRest
	FETCHFOUR
	VMULPS (SI), V0, V1
	VMULPS (4*LANES)(SI), V0, V2
	VMULPS (8*LANES)(SI), V0, V3
	VMULPS (12*LANES)(SI), V0, V4
	ENCODEFOUR(encodeRest)
	ADDQ $(16*LANES), SI
	ADDQ $(4*LANES), DI
	JMP  encodeLoop

encodeRest:
	ADDQ $(4*LANES), CX
	JEQ  encodeDone

encodeSingle:
	PREFETCHT0 AHEAD(SI)
	VMULPS     (SI), V0, V1
	ENCODE((DI))
	ADDQ       $(4*LANES), SI
	ADDQ       $LANES, DI
	SUBQ       $LANES, CX
	JNZ        encodeSingle

encodeDone:
	LEAQ (SI)(R10*4), SI
	ADDQ R10, DI
	DECQ BX
	JNZ  encodeBlock
	VZEROUPPER
	RET

// func encodeEach(dst *byte, x, scale *float32, n int, f *Format)
TEXT ENCODEEACH(SB), NOSPLIT, $0-40
	EACH
	FORMAT

encodeEachLoop:
	SUBQ    $(4*LANES), CX
	JCS     encodeEachRest
	VMOVUPS (SI), V1
	VMOVUPS (4*LANES)(SI), V2
	VMOVUPS (8*LANES)(SI), V3
	VMOVUPS (12*LANES)(SI), V4
	VMULPS  (DX), V1, V1
	VMULPS  (4*LANES)(DX), V2, V2
	VMULPS  (8*LANES)(DX), V3, V3
	VMULPS  (12*LANES)(DX), V4, V4
	ENCODEFOUR(encodeEachRest)
	ADDQ    $(16*LANES), SI
	ADDQ    $(16*LANES), DX
	ADDQ    $(4*LANES), DI
	JMP     encodeEachLoop

encodeEachRest:
	ADDQ $(4*LANES), CX
	JEQ  encodeEachDone

encodeEachSingle:
	VMOVUPS (SI), V1
	VMULPS  (DX), V1, V1
	ENCODE((DI))
	ADDQ    $(4*LANES), SI
	ADDQ    $(4*LANES), DX
	ADDQ    $LANES, DI
	SUBQ    $LANES, CX
	JNZ     encodeEachSingle

encodeEachDone:
	VZEROUPPER
	RET

// func decode(dst *float32, src *byte, scale *float32, blocks, whole, block int, f *Format)
TEXT DECODEBLOCKS(SB), NOSPLIT, $0-56
	ARGUMENTS
	WORDS

decodeBlock:
	VBROADCASTSS (DX), V0
	ADDQ         $4, DX
	MOVQ         R9, CX

decodeLoop:
	DECODE((SI))
	VMULPS  V0, V1, V1
	VMOVUPS V1, (DI)
	ADDQ    $LANES, SI
	ADDQ    $(4*LANES), DI
	SUBQ    $LANES, CX
	JNZ     decodeLoop
	LEAQ    (DI)(R10*4), DI
	ADDQ    R10, SI
	DECQ    BX
	JNZ     decodeBlock
	VZEROUPPER
	RET

// func decodeEach(dst *float32, src *byte, scale *float32, n int, f *Format)
TEXT DECODEEACH(SB), NOSPLIT, $0-40
	EACH
	WORDS

decodeEachLoop:
	DECODE((SI))
	VMULPS  (DX), V1, V1
	VMOVUPS V1, (DI)
	ADDQ    $LANES, SI
	ADDQ    $(4*LANES), DX
	ADDQ    $(4*LANES), DI
	SUBQ    $LANES, CX
	JNZ     decodeEachLoop
	VZEROUPPER
	RET

// func encodeE8M0(codes *byte, amax *float32, n int, bias int32)
TEXT ENCODEE8M0(SB), NOSPLIT, $0-28
	MOVQ codes+0(FP), DI
	MOVQ amax+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL bias+24(FP), AX
	EXPONENTS

encodeE8M0Loop:
	CODES
	ADDQ $(4*LANES), SI
	ADDQ $LANES, DI
	SUBQ $LANES, CX
	JNZ  encodeE8M0Loop
	VZEROUPPER
	RET

// func decodeE8M0(dst *float32, codes *byte, n int)
TEXT DECODEE8M0(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	XORL AX, AX
	EXPONENTS

decodeE8M0Loop:
	POWERS
	ADDQ $LANES, SI
	ADDQ $(4*LANES), DI
	SUBQ $LANES, CX
	JNZ  decodeE8M0Loop
	VZEROUPPER
	RET
