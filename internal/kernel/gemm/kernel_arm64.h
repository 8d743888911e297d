// The 6×16 kernel of arm64. A file that includes it defines KERNEL, the name of the function, and
// PRODUCT(d, n, m, e), which adds the products of each element of n and element e of m to d.
//
// Registers: V0 to V23 are the 6×16 sums, four for each row. R0 to R5 are the rows of A, or R0 its
// steps; R6 B, R8 its columns from 8 on and R7 its step; R9 the step of A; R10 C, R11 its row
// distance and R12 its next row; R13 the steps left.

// FMLA adds n times element e of m to d: FMLA Vd.4S, Vn.4S, Vm.S[e]. The assembler has no name for
// the form with an element.
#define FMLA(d, n, m, e) WORD $(0x4f801000 | ((e)&1)<<21 | ((e)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// FMUL multiplies d by element 0 of m: FMUL Vd.4S, Vd.4S, Vm.S[0].
#define FMUL(d, m) WORD $(0x4f809000 | (m)<<16 | (d)<<5 | (d))

// ROW adds the products of an element of A with 16 columns of B.
#define ROW(d, m, e) \
	PRODUCT(d, 24, m, e)   \
	PRODUCT(d+1, 25, m, e) \
	PRODUCT(d+2, 26, m, e) \
	PRODUCT(d+3, 27, m, e)

// STEP adds the products of a step in which the rows of A lie side by side.
#define STEP \
	VLD1.P (R6)(R7), [V24.S4, V25.S4, V26.S4, V27.S4] \
	VLD1.P (R0)(R9), [V28.S2, V29.S2, V30.S2]         \
	ROW(0, 28, 0)  \
	ROW(4, 28, 1)  \
	ROW(8, 29, 0)  \
	ROW(12, 29, 1) \
	ROW(16, 30, 0) \
	ROW(20, 30, 1)

// HALF adds the products of a step with columns d to d+1 of each row; LANE those of a step whose
// elements of A are element e of V24 to V29.
#define HALF(d, e) \
	PRODUCT(d, 30, 24, e)    \
	PRODUCT(d+1, 31, 24, e)  \
	PRODUCT(d+4, 30, 25, e)  \
	PRODUCT(d+5, 31, 25, e)  \
	PRODUCT(d+8, 30, 26, e)  \
	PRODUCT(d+9, 31, 26, e)  \
	PRODUCT(d+12, 30, 27, e) \
	PRODUCT(d+13, 31, 27, e) \
	PRODUCT(d+16, 30, 28, e) \
	PRODUCT(d+17, 31, 28, e) \
	PRODUCT(d+20, 30, 29, e) \
	PRODUCT(d+21, 31, 29, e)

#define LANE(e) \
	VLD1.P (R6)(R7), [V30.S4, V31.S4] \
	HALF(0, e)                        \
	VLD1.P (R8)(R7), [V30.S4, V31.S4] \
	HALF(2, e)

// SET stores a row of sums times alpha; UPDATE adds beta times what was there. V28 and V29 hold
// alpha and beta.
#define SET(d, v0, v1, v2, v3) \
	FMUL(d, 28)   \
	FMUL(d+1, 28) \
	FMUL(d+2, 28) \
	FMUL(d+3, 28) \
	VST1 [v0.S4, v1.S4, v2.S4, v3.S4], (R10) \
	ADD  R11, R10

#define UPDATE(d, v0, v1, v2, v3) \
	VLD1 (R10), [V24.S4, V25.S4, V26.S4, V27.S4] \
	FMUL(d, 28)        \
	FMUL(d+1, 28)      \
	FMUL(d+2, 28)      \
	FMUL(d+3, 28)      \
	FMLA(d, 24, 29, 0) \
	FMLA(d+1, 25, 29, 0) \
	FMLA(d+2, 26, 29, 0) \
	FMLA(d+3, 27, 29, 0) \
	VST1 [v0.S4, v1.S4, v2.S4, v3.S4], (R10) \
	ADD  R11, R10

#define ZERO(v0, v1, v2, v3) \
	VEOR v0.B16, v0.B16, v0.B16 \
	VEOR v1.B16, v1.B16, v1.B16 \
	VEOR v2.B16, v2.B16, v2.B16 \
	VEOR v3.B16, v3.B16, v3.B16

TEXT KERNEL(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R14
	MOVD Tile_A(R14), R0
	MOVD Tile_B(R14), R6
	MOVD Tile_BStep(R14), R7
	MOVD Tile_C(R14), R10
	MOVD Tile_CRow(R14), R11
	MOVD Tile_K(R14), R13
	LSL  $2, R7
	LSL  $2, R11

	// Prefetch C while the sums are computed.
	MOVD R10, R12
	PRFM (R12), PLDL1KEEP
	ADD  R11, R12
	PRFM (R12), PLDL1KEEP
	ADD  R11, R12
	PRFM (R12), PLDL1KEEP
	ADD  R11, R12
	PRFM (R12), PLDL1KEEP
	ADD  R11, R12
	PRFM (R12), PLDL1KEEP
	ADD  R11, R12
	PRFM (R12), PLDL1KEEP

	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)
	ZERO(V12, V13, V14, V15)
	ZERO(V16, V17, V18, V19)
	ZERO(V20, V21, V22, V23)

	MOVD Tile_ARow(R14), R9
	CMP  $1, R9
	BEQ  steps

	// The steps of A lie side by side.
	LSL  $2, R9
	ADD  R9, R0, R1
	ADD  R9, R1, R2
	ADD  R9, R2, R3
	ADD  R9, R3, R4
	ADD  R9, R4, R5
	ADD  $32, R6, R8
	SUBS $4, R13
	BLT  lastRows

rows:
	FMOVQ.P 16(R0), F24
	FMOVQ.P 16(R1), F25
	FMOVQ.P 16(R2), F26
	FMOVQ.P 16(R3), F27
	FMOVQ.P 16(R4), F28
	FMOVQ.P 16(R5), F29
	LANE(0)
	LANE(1)
	LANE(2)
	LANE(3)
	SUBS $4, R13
	BGE  rows

lastRows:
	ADDS $4, R13
	BEQ  store

lastRow:
	FMOVS.P 4(R0), F24
	FMOVS.P 4(R1), F25
	FMOVS.P 4(R2), F26
	FMOVS.P 4(R3), F27
	FMOVS.P 4(R4), F28
	FMOVS.P 4(R5), F29
	LANE(0)
	SUBS $1, R13
	BNE  lastRow
	B    store

steps:
	MOVD Tile_AStep(R14), R9
	LSL  $2, R9
	SUBS $4, R13
	BLT  lastSteps

fourSteps:
	STEP
	STEP
	STEP
	STEP
	SUBS $4, R13
	BGE  fourSteps

lastSteps:
	ADDS $4, R13
	BEQ  store

lastStep:
	STEP
	SUBS $1, R13
	BNE  lastStep

store:
	FMOVS Tile_Alpha(R14), F28
	FMOVS Tile_Beta(R14), F29
	MOVWU Tile_Beta(R14), R15
	TSTW  $0x7fffffff, R15
	BNE   update
	SET(0, V0, V1, V2, V3)
	SET(4, V4, V5, V6, V7)
	SET(8, V8, V9, V10, V11)
	SET(12, V12, V13, V14, V15)
	SET(16, V16, V17, V18, V19)
	SET(20, V20, V21, V22, V23)
	RET

update:
	UPDATE(0, V0, V1, V2, V3)
	UPDATE(4, V4, V5, V6, V7)
	UPDATE(8, V8, V9, V10, V11)
	UPDATE(12, V12, V13, V14, V15)
	UPDATE(16, V16, V17, V18, V19)
	UPDATE(20, V20, V21, V22, V23)
	RET
