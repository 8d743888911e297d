package mpi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// job is the recorders of the ranks of a job that have run some collectives together.
func job(ranks, calls int) []*recorder {
	all := make([]*recorder, ranks)
	for i := range all {
		all[i] = newRecorder()
		for range calls {
			all[i].enter(sum(ranks, 100))
			all[i].leave()
		}
	}
	return all
}

// sum is an all_reduce of all ranks.
func sum(ranks, elements int) what {
	return what{Op: "all_reduce", Elements: elements, DType: "f32", Detail: "sum", Ranks: ranks}
}

// verdict is what the first rank says of the states of the ranks that answer.
func verdict(all []*recorder) string {
	states := map[int]string{}
	for rank, r := range all {
		if r != nil {
			states[rank] = r.state()
		}
	}
	return judge(states, len(all))
}

// One rank of a job does something else than the others, which wait: it is named with what it does.
func TestOneRankIsNamed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		ranks, calls := 3+r.IntN(6), 1+r.IntN(40)
		odd := r.IntN(ranks)
		all := job(ranks, calls)
		for rank, rec := range all {
			if rank != odd {
				rec.enter(sum(ranks, 100))
			}
		}
		head := fmt.Sprintf("%d ranks of ranks 0-%d in all_reduce %d of 100 f32 (sum): rank %d ", ranks-1, ranks-1, calls+1, odd)
		var want string
		switch r.IntN(5) {
		case 0:
			want = fmt.Sprintf("hangs: it has not entered it; its last one was all_reduce %d of 100 f32 (sum), which it left 0s ago", calls)
		case 1:
			all[odd].enter(sum(ranks, 99))
			want = fmt.Sprintf("has entered all_reduce %d of 99 f32 (sum)", calls+1)
		case 2:
			other := sum(ranks, 100)
			other.DType = "bf16"
			all[odd].enter(other)
			all[odd].leave() // a rank that brought less may have gone on
			all[odd].enter(sum(ranks, 7))
			want = fmt.Sprintf("has entered all_reduce %d of 100 bf16 (sum)", calls+1)
		case 3:
			all[odd].enter(what{Op: "barrier", Ranks: ranks})
			want = fmt.Sprintf("has entered barrier %d", calls+1)
		case 4:
			all[odd] = nil
			want = "does not answer"
		}
		assert.Equal(t, head+want, verdict(all))
	}
}

// A rank that waits for others in another group is named with it, and so is who keeps them waiting.
func TestGroupsThatWait(t *testing.T) {
	t.Parallel()
	all := job(4, 2)
	pair := what{Op: "all_gather", Elements: 5, DType: "i32", First: 1, Stride: 2, Ranks: 2} // ranks 1 and 3
	all[0].enter(sum(4, 100))
	all[2].enter(sum(4, 100))
	all[1].enter(pair)
	text := verdict(all)
	assert.Contains(t, text, "2 ranks of ranks 0-3 in all_reduce 3 of 100 f32 (sum): rank 1 is in all_gather 1 of 5 i32 with ranks 1, 3, rank 3 hangs: it has not entered it; ")
	assert.Contains(t, text, "; 1 rank of ranks 1, 3 in all_gather 1 of 5 i32: rank 3 hangs: it has not entered it; ")
}

// When all ranks are in one collective, or in none, nobody is named.
func TestNobodyIsNamed(t *testing.T) {
	t.Parallel()
	all := job(3, 5)
	assert.Empty(t, verdict(all))
	for _, r := range all {
		r.enter(sum(3, 100))
	}
	assert.Empty(t, verdict(all))
}

// Whatever another process says of itself, the first rank survives it.
func TestWrongStates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "{}", "[]", "[{}]", "null", `[{"ranks":1000000000}]`, `[{"ranks":2,"first":-1}]`, `[{"ranks":2,"stride":-1}]`, `[{"ranks":3}]`, `[{"ranks":2,"stride":9}]`} {
		assert.NotPanics(t, func() { judge(map[int]string{0: text, 1: text, 7: text, -1: text}, 2) })
		assert.NotPanics(t, func() { judge(map[int]string{0: text, 1: text}, 2) })
	}
}

// A rank remembers its last collectives, and which of them it has not left.
func TestRecent(t *testing.T) {
	t.Parallel()
	r := job(2, 40)[0]
	r.enter(sum(2, 3))
	lines := strings.Split(strings.TrimPrefix(r.lines(kept), "\n"), "\n")
	assert.Len(t, lines, kept)
	assert.Regexp(t, `^all_reduce 10 of 100 f32 \(sum\) with ranks 0-1, entered \S+ ago, took \S+$`, lines[0])
	assert.Regexp(t, `^all_reduce 41 of 3 f32 \(sum\) with ranks 0-1, entered \S+ ago, not left$`, lines[kept-1])
}
