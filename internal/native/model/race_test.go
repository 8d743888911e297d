//go:build race || invariants

package model_test

// callsAllocate says whether calls allocate because the race detector runs, where sync.Pool drops
// what it holds, or because invariants are checked.
const callsAllocate = true
