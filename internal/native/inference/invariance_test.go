package inference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probabilities returns the tokens that a prompt gets, with the bits of their log probabilities.
func probabilities(t *testing.T, e *inference.Engine, prompt []int32) (ids []int32, bits []uint64) {
	_, err := e.Generate(t.Context(), inference.Request{Prompt: prompt, MaxTokens: 12, Logprobs: true}, func(event inference.Event) error {
		if event.ID >= 0 {
			ids, bits = append(ids, event.ID), append(bits, math.Float64bits(event.Logprob.Logprob))
		}
		return nil
	})
	assert.NoError(t, err)
	return ids, bits
}

func TestBatchInvariantTextsHaveTheSameBitsBesideOthers(t *testing.T) {
	for name, c := range architectures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := cpu.New()
			m, err := model.NewFrozen(c, backend)
			require.NoError(t, err)
			require.NoError(t, m.Init(11))
			defer func() { assert.NoError(t, m.Close()); assert.NoError(t, backend.Close()) }()
			r := rand.New(rand.NewPCG(1, 2))
			prompts := make([][]int32, 12)
			for i := range prompts {
				prompts[i] = make([]int32, []int{1, 2, 7, 8, 9, 16, 17, 30, 41, 3, 5, 23}[i])
				for j := range prompts[i] {
					prompts[i][j] = int32(r.IntN(256))
				}
			}
			want, wantBits := make([][]int32, len(prompts)), make([][]uint64, len(prompts))
			alone := newEngine(t, m, inference.Settings{Slots: 1, BatchInvariant: true})
			for i, p := range prompts {
				want[i], wantBits[i] = probabilities(t, alone, p)
				require.NotEmpty(t, want[i])
			}
			require.NoError(t, alone.Close())
			for _, slots := range []int{3, 8} {
				e := newEngine(t, m, inference.Settings{Slots: slots, BatchInvariant: true})
				var wait sync.WaitGroup
				for _, i := range r.Perm(len(prompts)) {
					wait.Go(func() {
						ids, bits := probabilities(t, e, prompts[i])
						assert.Equal(t, want[i], ids, "prompt of %d tokens", len(prompts[i]))
						assert.True(t, slices.Equal(wantBits[i], bits), "prompt of %d tokens among %d texts at once", len(prompts[i]), slots)
					})
				}
				wait.Wait()
				require.NoError(t, e.Close())
			}
		})
	}
}

func TestBatchInvarianceIsRefusedWhereItDoesNotHold(t *testing.T) {
	backend := cpu.New()
	m, err := model.NewFrozen(llama(), backend)
	require.NoError(t, err)
	require.NoError(t, m.Init(11))
	defer func() { assert.NoError(t, m.Close()); assert.NoError(t, backend.Close()) }()
	_, err = inference.New(m, nil, newManager(t), inference.Settings{Slots: inference.InvariantRows + 1, BatchInvariant: true})
	assert.EqualError(t, err, fmt.Sprintf("given %d texts at once, want at most %d whose bits do not depend on the others", inference.InvariantRows+1, inference.InvariantRows))

	reg := opregistry.NewRegistry()
	source := flagos.Source()
	for i, impl := range source.Impls {
		if run, ok := impl.Run.(opregistry.Func[gemm.GenericGemmArgs]); ok {
			source.Impls[i].Run = opregistry.Func[gemm.GenericGemmArgs](func(e *opregistry.Exec, a gemm.GenericGemmArgs) error {
				if a.B.Shape().Rows() == 5 {
					a.Alpha = opregistry.Float(1.0000001)
				}
				return run(e, a)
			})
		}
	}
	require.NoError(t, reg.Register(source))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer mgr.Close()
	for slots := range inference.InvariantRows {
		_, err = inference.New(m, tokenizer.Byte{}, mgr, inference.Settings{Slots: slots + 1, BatchInvariant: true})
		assert.ErrorContains(t, err, "the logits of a token have other bits in a step of 5 tokens than in one of its own")
	}
}
