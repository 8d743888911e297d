// Philox4x32 for vectors of any width: a file that includes this one says in V0 to V7 what a vector
// is, and defines ATLEAST, NUMBERS and
//
//	COUNTERS, M0, M1                   registers
//	KEY0 to KEY19                      the keys of the rounds, two each
//	CONSTANTS                          sets all of these, with M0 in AX and M1 in BX, and CX from
//	                                   words to groups of counters
//	ADDSTEP                            goes on to the next counters
//	XOR(k, c, d)                       sets d to k^c, and XOR3(k, c, d) to k^c^d, for a key k
//	PAIR(high, low)                    puts the words of high into the upper halves of low
//	THRESHOLD                          sets the threshold
//	DECIDE                             stores for each word of V4 and V5 whether it is at least the
//	                                   threshold, and goes on to the next group
//	STORE                              stores the words of V4 and V5, and goes on to the next group
//
// A round takes four words c0 to c3 under the keys k0 and k1 to
//
//	hi(M1·c2)^c1^k0, lo(M1·c2), hi(M0·c0)^c3^k1, lo(M0·c0)
//
// Each word lies in the low half of a lane of 64 bits, as VPMULUDQ wants it, one lane for each
// counter; the high halves hold what is left of products. The counters of lanes 2i and 2i+1 are
// those of lane i and of lane i of the upper half, so that the words of all counters are in order
// when pairs of lanes are taken apart at the end.

#define ROUND(c0, c1, c2, c3, k0, k1, d0, d1, d2, d3) \
	VPMULUDQ M0, c0, d3    \
	VPMULUDQ M1, c2, d1    \
	VPSHUFD  $0xF5, d1, d0 \
	VPSRLQ   $32, d3, d2   \
	XOR3(k0, c1, d0)       \
	XOR3(k1, c3, d2)

// NEXT leaves in V4 and V5 the words of the next counters. The first round has c2 = c3 = 0.
#define NEXT \
	VPMULUDQ M0, COUNTERS, V7                           \
	VPSRLQ   $32, COUNTERS, V4                          \
	XOR(KEY0, V4, V4)                                   \
	VXORPS   V5, V5, V5                                 \
	VPSRLQ   $32, V7, V6                                \
	XOR(KEY1, V6, V6)                                   \
	ADDSTEP                                             \
	ROUND(V4, V5, V6, V7, KEY2, KEY3, V0, V1, V2, V3)   \
	ROUND(V0, V1, V2, V3, KEY4, KEY5, V4, V5, V6, V7)   \
	ROUND(V4, V5, V6, V7, KEY6, KEY7, V0, V1, V2, V3)   \
	ROUND(V0, V1, V2, V3, KEY8, KEY9, V4, V5, V6, V7)   \
	ROUND(V4, V5, V6, V7, KEY10, KEY11, V0, V1, V2, V3) \
	ROUND(V0, V1, V2, V3, KEY12, KEY13, V4, V5, V6, V7) \
	ROUND(V4, V5, V6, V7, KEY14, KEY15, V0, V1, V2, V3) \
	ROUND(V0, V1, V2, V3, KEY16, KEY17, V4, V5, V6, V7) \
	ROUND(V4, V5, V6, V7, KEY18, KEY19, V0, V1, V2, V3) \
	PAIR(V1, V0)                                        \
	PAIR(V3, V2)                                        \
	VPUNPCKLQDQ V2, V0, V4                              \
	VPUNPCKHQDQ V2, V0, V5

#define START \
	MOVQ dst+0(FP), DI   \
	MOVQ words+8(FP), CX \
	MOVQ keys+16(FP), SI \
	MOVL $0xD2511F53, AX \
	MOVL $0xCD9E8D57, BX \
	CONSTANTS

// func atLeast(dst *uint32, words int, keys *keySchedule, counter uint64, threshold uint32)
TEXT ATLEAST(SB), NOSPLIT, $0-36
	START
	THRESHOLD

decide:
	NEXT
	DECIDE
	DECQ CX
	JNE  decide
	VZEROUPPER
	RET

// func numbers(dst *uint32, words int, keys *keySchedule, counter uint64)
TEXT NUMBERS(SB), NOSPLIT, $0-32
	START

store:
	NEXT
	STORE
	DECQ CX
	JNE  store
	VZEROUPPER
	RET
