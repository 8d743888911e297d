package main

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServeModelFlags(t *testing.T) {
	for give, want := range map[string]string{
		"-clients 1,x": `-clients: given "1,x", want numbers of clients such as 1,8,32`,
		"-clients 0":   `-clients: given "0"`,
		"-tokens 0":    "want at least one token, round and thread",
		"-o yaml":      `-o: given "yaml"`,
		"more":         `unexpected argument "more"`,
	} {
		assert.ErrorContains(t, serveModel(t.Context(), strings.Fields(give), io.Discard, io.Discard), want, give)
	}
	var o serveModelOptions
	o.llama = filepath.Join(t.TempDir(), "none")
	_, err := o.llamaServer(t.Context(), "", "")
	require.ErrorIs(t, err, errAbsent)
	assert.ErrorContains(t, err, "run make llama-server, or give -llama-server")
}

func TestServeModelRatiosAreOfOneRound(t *testing.T) {
	rows := []*servedRow{{}, {}, {}, {}}
	for _, slow := range []float64{1, 2, 5} {
		for i, speed := range []float64{100, 80, 300, 600} {
			rows[i].turns = append(rows[i].turns, servedTurn{Speed: speed / slow, First: slow})
		}
	}
	compareServers(rows, 2)
	for i, want := range []float64{1, 1.25, 1, 0.5} {
		assert.InDelta(t, want, rows[i].Ratio, 1e-9)
		assert.Equal(t, 2., rows[i].First)
	}
}

// Every client gets its texts, and a server that gives other numbers of tokens is a fault.
func TestServeModelLoad(t *testing.T) {
	var texts, wrong atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Prompt []int
			Tokens int64 `json:"max_tokens"`
			More   bool
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		assert.Len(t, body.Prompt, 7)
		assert.True(t, body.More)
		if body.Tokens == 5 {
			texts.Add(1)
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"usage": map[string]any{"completion_tokens": body.Tokens + wrong.Load()}}))
	}))
	defer server.Close()
	o := serveModelOptions{prompt: 7}
	o.tokens = 5
	s := modelServer{more: map[string]any{"more": true}}
	turn, err := o.load(context.Background(), s, server.URL, 3, rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	assert.EqualValues(t, 3*(textsEach+1), texts.Load())
	assert.Positive(t, turn.Speed)
	wrong.Store(1)
	_, err = o.load(context.Background(), s, server.URL, 3, rand.New(rand.NewPCG(1, 2)))
	assert.ErrorContains(t, err, "given status 200")
}
