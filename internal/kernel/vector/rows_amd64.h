// Products with the rows of a matrix for vectors of any width: a file that includes this one has
// included the header of its instruction set, and defines the names of the functions and
//
//	HALFTAIL(from, v)  loads the elements of MASK at DX, of 16 bits, with zeros after them, to v
//
// Registers: DI results, R11 rows left, R8 vector, R9 its length, R10 bytes from row to row, R12 the
// row; SI and DX run along vector and row, CX elements left.

#define FROMF32(mem, v) VMOVUPS mem, v
#define FROMBF16(mem, v) \
	VPMOVZXWD mem, v    \
	VPSLLD    $16, v, v
#define FROMF16(mem, v) VCVTPH2PS mem, v

#define F32TAIL(from, v) TAIL((DX), v)

// DOTROWS adds in the order of DOT. from loads a vector of a row, whose elements have size bytes,
// and last the elements of MASK.
#define DOTROWS(from, size, last) \
	MOVQ dst_base+0(FP), DI                 \
	MOVQ dst_len+8(FP), R11                 \
	MOVQ x_base+24(FP), R8                  \
	MOVQ x_len+32(FP), R9                   \
	MOVQ y_base+48(FP), R12                 \
	MOVQ pitch+72(FP), R10                  \
	IMULQ $size, R10                        \
row:                                        \
	TESTQ R11, R11                          \
	JEQ   done                              \
	MOVQ  R8, SI                            \
	MOVQ  R9, CX                            \
	MOVQ  R12, DX                           \
	VXORPS V0, V0, V0                       \
	VXORPS V1, V1, V1                       \
	VXORPS V2, V2, V2                       \
	VXORPS V3, V3, V3                       \
four:                                       \
	CMPQ CX, $(4*LANES)                     \
	JLT  one                                \
	from((0*size*LANES)(DX), V4)            \
	from((1*size*LANES)(DX), V5)            \
	from((2*size*LANES)(DX), V6)            \
	from((3*size*LANES)(DX), V7)            \
	VFMADD231PS (0*LANES)(SI), V4, V0       \
	VFMADD231PS (4*LANES)(SI), V5, V1       \
	VFMADD231PS (8*LANES)(SI), V6, V2       \
	VFMADD231PS (12*LANES)(SI), V7, V3      \
	ADDQ $(16*LANES), SI                    \
	ADDQ $(4*size*LANES), DX                \
	SUBQ $(4*LANES), CX                     \
	JMP  four                               \
one:                                        \
	CMPQ CX, $LANES                         \
	JLT  tail                               \
	from((DX), V4)                          \
	VFMADD231PS (SI), V4, V0                \
	ADDQ $(4*LANES), SI                     \
	ADDQ $(size*LANES), DX                  \
	SUBQ $LANES, CX                         \
	JMP  one                                \
tail:                                       \
	TESTQ CX, CX                            \
	JEQ   whole                             \
	MASK                                    \
	TAIL((SI), V4)                          \
	last(from, V5)                          \
	VFMADD231PS V5, V4, V1                  \
whole:                                      \
	VADDPS V1, V0, V0                       \
	VADDPS V3, V2, V2                       \
	VADDPS V2, V0, V0                       \
	FOLD(VADDPS, VADDSS)                    \
	VMOVSS X0, (DI)                         \
	ADDQ   $4, DI                           \
	ADDQ   R10, R12                         \
	DECQ   R11                              \
	JMP    row                              \
done:                                       \
	VZEROUPPER                              \
	RET

// func dotRows(dst, x, y []float32, pitch int)
TEXT DOTROWSF32(SB), NOSPLIT, $16-80
	DOTROWS(FROMF32, 4, F32TAIL)

// func dotRowsBF16(dst, x []float32, y []uint16, pitch int)
TEXT DOTROWSBF16(SB), NOSPLIT, $16-80
	DOTROWS(FROMBF16, 2, HALFTAIL)

// func dotRowsF16(dst, x []float32, y []uint16, pitch int)
TEXT DOTROWSF16(SB), NOSPLIT, $16-80
	DOTROWS(FROMF16, 2, HALFTAIL)

// TILESTEP adds the products of one vector of each of three rows at R11 with one of each of four
// rows at R12, and moves on by some vectors.
#define TILESTEP(vectors) \
	VMOVUPS (R11), V12           \
	VMOVUPS (R11)(R8*1), V13     \
	VMOVUPS (R11)(R8*2), V14     \
	VMOVUPS (R12), V15           \
	VFMADD231PS V15, V12, V0     \
	VFMADD231PS V15, V13, V1     \
	VFMADD231PS V15, V14, V2     \
	VMOVUPS (R12)(R9*1), V15     \
	VFMADD231PS V15, V12, V3     \
	VFMADD231PS V15, V13, V4     \
	VFMADD231PS V15, V14, V5     \
	VMOVUPS (R12)(R9*2), V15     \
	VFMADD231PS V15, V12, V6     \
	VFMADD231PS V15, V13, V7     \
	VFMADD231PS V15, V14, V8     \
	VMOVUPS (R12)(R10*1), V15    \
	VFMADD231PS V15, V12, V9     \
	VFMADD231PS V15, V13, V10    \
	VFMADD231PS V15, V14, V11    \
	ADDQ $(vectors*4*LANES), R11 \
	ADDQ $(vectors*4*LANES), R12

// PUTSUMS stores V0 to V11 at BX, from a number of bytes for each lane on, and ADDSUMS adds what is
// there to them.
#define PUTSUMS(from) \
	VMOVUPS V0, ((from+0)*LANES)(BX)   \
	VMOVUPS V1, ((from+4)*LANES)(BX)   \
	VMOVUPS V2, ((from+8)*LANES)(BX)   \
	VMOVUPS V3, ((from+12)*LANES)(BX)  \
	VMOVUPS V4, ((from+16)*LANES)(BX)  \
	VMOVUPS V5, ((from+20)*LANES)(BX)  \
	VMOVUPS V6, ((from+24)*LANES)(BX)  \
	VMOVUPS V7, ((from+28)*LANES)(BX)  \
	VMOVUPS V8, ((from+32)*LANES)(BX)  \
	VMOVUPS V9, ((from+36)*LANES)(BX)  \
	VMOVUPS V10, ((from+40)*LANES)(BX) \
	VMOVUPS V11, ((from+44)*LANES)(BX)

#define ADDSUMS(from) \
	VADDPS ((from+0)*LANES)(BX), V0, V0    \
	VADDPS ((from+4)*LANES)(BX), V1, V1    \
	VADDPS ((from+8)*LANES)(BX), V2, V2    \
	VADDPS ((from+12)*LANES)(BX), V3, V3   \
	VADDPS ((from+16)*LANES)(BX), V4, V4   \
	VADDPS ((from+20)*LANES)(BX), V5, V5   \
	VADDPS ((from+24)*LANES)(BX), V6, V6   \
	VADDPS ((from+28)*LANES)(BX), V7, V7   \
	VADDPS ((from+32)*LANES)(BX), V8, V8   \
	VADDPS ((from+36)*LANES)(BX), V9, V9   \
	VADDPS ((from+40)*LANES)(BX), V10, V10 \
	VADDPS ((from+44)*LANES)(BX), V11, V11

// dotTile makes four passes, each over every fourth vector of the rows: pass AX computes the sums
// that DOT has in V0 to V3, of all twelve products. BX holds the sums of the first two passes, and
// then those of the third. Each pass fetches one of the four rows after those of y, which a caller
// that goes through a matrix needs next.
//
// func dotTile(dst *TileProducts, sums *TileSums, x []float32, xPitch int, y []float32, yPitch, n int)
TEXT DOTTILE(SB), NOSPLIT, $0-88
	MOVQ sums+8(FP), BX
	MOVQ x_base+16(FP), SI
	MOVQ xPitch+40(FP), R8
	MOVQ y_base+48(FP), DX
	MOVQ yPitch+72(FP), R9
	MOVQ n+80(FP), R13
	SHLQ $2, R8
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	LEAQ (DX)(R9*4), R15
	XORQ AX, AX

pass:
	VXORPS V0, V0, V0
	VXORPS V1, V1, V1
	VXORPS V2, V2, V2
	VXORPS V3, V3, V3
	VXORPS V4, V4, V4
	VXORPS V5, V5, V5
	VXORPS V6, V6, V6
	VXORPS V7, V7, V7
	VXORPS V8, V8, V8
	VXORPS V9, V9, V9
	VXORPS V10, V10, V10
	VXORPS V11, V11, V11
	MOVQ SI, R11
	MOVQ DX, R12
	MOVQ R15, R14
	ADDQ R9, R15
	MOVQ R13, CX

tile4:
	CMPQ CX, $(4*LANES)
	JLT  tile1
	PREFETCHT0 (R14)
	PREFETCHT0 64(R14)
	ADDQ $(16*LANES), R14
	TILESTEP(4)
	SUBQ $(4*LANES), CX
	JMP  tile4

tile1:
	TESTQ AX, AX
	JNE   passed

tileRest:
	CMPQ CX, $LANES
	JLT  passed
	TILESTEP(1)
	SUBQ $LANES, CX
	JMP  tileRest

passed:
	ADDQ $(4*LANES), SI
	ADDQ $(4*LANES), DX
	INCQ AX
	CMPQ AX, $2
	JEQ  second
	CMPQ AX, $3
	JEQ  third
	CMPQ AX, $4
	JEQ  fourth
	PUTSUMS(0)
	JMP pass

second:
	ADDSUMS(0)
	PUTSUMS(0)
	JMP pass

third:
	PUTSUMS(48)
	JMP pass

fourth:
	ADDSUMS(48)
	ADDSUMS(0)
	PUTSUMS(0)
	MOVQ dst+0(FP), DI
	MOVQ $12, CX

fold:
	VMOVUPS (BX), V0
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, (DI)
	ADDQ $(4*LANES), BX
	ADDQ $4, DI
	DECQ CX
	JNE  fold
	VZEROUPPER
	RET

// func axpyRows(dst, a, y []float32, pitch int)
TEXT AXPYROWS(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ a_base+24(FP), R8
	MOVQ a_len+32(FP), R9
	MOVQ y_base+48(FP), R12
	MOVQ pitch+72(FP), R10
	SHLQ $2, R10

cols4:
	CMPQ CX, $(4*LANES)
	JLT  cols1
	VMOVUPS (0*LANES)(DI), V0
	VMOVUPS (4*LANES)(DI), V1
	VMOVUPS (8*LANES)(DI), V2
	VMOVUPS (12*LANES)(DI), V3
	MOVQ R8, SI
	MOVQ R9, R11
	MOVQ R12, DX

rows4:
	TESTQ R11, R11
	JEQ   store4
	VBROADCASTSS (SI), V4
	VFMADD231PS  (0*LANES)(DX), V4, V0
	VFMADD231PS  (4*LANES)(DX), V4, V1
	VFMADD231PS  (8*LANES)(DX), V4, V2
	VFMADD231PS  (12*LANES)(DX), V4, V3
	ADDQ $4, SI
	ADDQ R10, DX
	DECQ R11
	JMP  rows4

store4:
	VMOVUPS V0, (0*LANES)(DI)
	VMOVUPS V1, (4*LANES)(DI)
	VMOVUPS V2, (8*LANES)(DI)
	VMOVUPS V3, (12*LANES)(DI)
	ADDQ $(16*LANES), DI
	ADDQ $(16*LANES), R12
	SUBQ $(4*LANES), CX
	JMP  cols4

cols1:
	CMPQ CX, $LANES
	JLT  colsTail
	VMOVUPS (DI), V0
	MOVQ R8, SI
	MOVQ R9, R11
	MOVQ R12, DX

rows1:
	TESTQ R11, R11
	JEQ   store1
	VBROADCASTSS (SI), V4
	VFMADD231PS  (DX), V4, V0
	ADDQ $4, SI
	ADDQ R10, DX
	DECQ R11
	JMP  rows1

store1:
	VMOVUPS V0, (DI)
	ADDQ $(4*LANES), DI
	ADDQ $(4*LANES), R12
	SUBQ $LANES, CX
	JMP  cols1

colsTail:
	TESTQ CX, CX
	JEQ   colsEnd
	MASK
	TAIL((DI), V0)

rowsTail:
	TESTQ R9, R9
	JEQ   storeTail
	VBROADCASTSS (R8), V4
	TAIL((R12), V5)
	VFMADD231PS V5, V4, V0
	ADDQ $4, R8
	ADDQ R10, R12
	DECQ R9
	JMP  rowsTail

storeTail:
	PUTTAIL(V0, (DI))

colsEnd:
	VZEROUPPER
	RET

// ROW moves DX to the row that SI points to, and broadcasts its weight. Registers of sumRows: DI
// results, CX columns left, R8 indexes of rows, R9 their number, R10 bytes from row to row, R11
// weights, R13 bytes from weight to weight, R12 the first row; SI, BX run along indexes and weights,
// R15 rows left.
#define ROW \
	MOVLQSX (SI), DX      \
	IMULQ   R10, DX       \
	ADDQ    R12, DX       \
	VBROADCASTSS (BX), V8 \
	ADDQ    $4, SI        \
	ADDQ    R13, BX

#define FIRSTROW \
	MOVQ R8, SI  \
	MOVQ R9, R15 \
	MOVQ R11, BX \
	ROW

// func sumRows(dst, w []float32, wStep int, y []float32, pitch int, rows []int32)
TEXT SUMROWS(SB), NOSPLIT, $0-112
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ w_base+24(FP), R11
	MOVQ wStep+48(FP), R13
	MOVQ y_base+56(FP), R12
	MOVQ pitch+80(FP), R10
	MOVQ rows_base+88(FP), R8
	MOVQ rows_len+96(FP), R9
	SHLQ $2, R10
	SHLQ $2, R13

cols8:
	CMPQ CX, $(8*LANES)
	JLT  cols1
	FIRSTROW
	VMULPS (0*LANES)(DX), V8, V0
	VMULPS (4*LANES)(DX), V8, V1
	VMULPS (8*LANES)(DX), V8, V2
	VMULPS (12*LANES)(DX), V8, V3
	VMULPS (16*LANES)(DX), V8, V4
	VMULPS (20*LANES)(DX), V8, V5
	VMULPS (24*LANES)(DX), V8, V6
	VMULPS (28*LANES)(DX), V8, V7

rows8:
	DECQ R15
	JEQ  store8
	ROW
	VFMADD231PS (0*LANES)(DX), V8, V0
	VFMADD231PS (4*LANES)(DX), V8, V1
	VFMADD231PS (8*LANES)(DX), V8, V2
	VFMADD231PS (12*LANES)(DX), V8, V3
	VFMADD231PS (16*LANES)(DX), V8, V4
	VFMADD231PS (20*LANES)(DX), V8, V5
	VFMADD231PS (24*LANES)(DX), V8, V6
	VFMADD231PS (28*LANES)(DX), V8, V7
	JMP  rows8

store8:
	VMOVUPS V0, (0*LANES)(DI)
	VMOVUPS V1, (4*LANES)(DI)
	VMOVUPS V2, (8*LANES)(DI)
	VMOVUPS V3, (12*LANES)(DI)
	VMOVUPS V4, (16*LANES)(DI)
	VMOVUPS V5, (20*LANES)(DI)
	VMOVUPS V6, (24*LANES)(DI)
	VMOVUPS V7, (28*LANES)(DI)
	ADDQ $(32*LANES), DI
	ADDQ $(32*LANES), R12
	SUBQ $(8*LANES), CX
	JMP  cols8

cols1:
	CMPQ CX, $LANES
	JLT  colsTail
	FIRSTROW
	VMULPS (DX), V8, V0

rows1:
	DECQ R15
	JEQ  store1
	ROW
	VFMADD231PS (DX), V8, V0
	JMP  rows1

store1:
	VMOVUPS V0, (DI)
	ADDQ $(4*LANES), DI
	ADDQ $(4*LANES), R12
	SUBQ $LANES, CX
	JMP  cols1

colsTail:
	TESTQ CX, CX
	JEQ   colsEnd
	MASK
	FIRSTROW
	TAIL((DX), V0)
	VMULPS V0, V8, V0

rowsTail:
	DECQ R15
	JEQ  storeTail
	ROW
	TAIL((DX), V1)
	VFMADD231PS V1, V8, V0
	JMP  rowsTail

storeTail:
	PUTTAIL(V0, (DI))

colsEnd:
	VZEROUPPER
	RET
