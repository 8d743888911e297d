//go:build linux && (amd64 || arm64)

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDisk compares what a loss of power may leave with what POSIX allows.
func TestDisk(t *testing.T) {
	t.Parallel()
	create := []fileCall{
		{kind: callOpen, path: "/d/a"},
		{kind: callWrite, path: "/d/a", data: []byte("one")},
	}
	replace := []fileCall{
		{kind: callOpen, path: "/d/b"},
		{kind: callWrite, path: "/d/b", data: []byte("two")},
		{kind: callSync, path: "/d/b"},
		{kind: callRename, path: "/d/b", to: "/d/a"},
	}
	sync := []fileCall{{kind: callSync, path: "/d/a"}, {kind: callSync, path: "/d"}}
	const none = "no file"
	for _, tt := range []struct {
		name  string
		calls [][]fileCall
		want  []string // all contents of a that may be left
	}{
		{"nothing is synced", [][]fileCall{create}, []string{none, "", "o", "on", "one", "\x00\x00\x00"}},
		{"the name is not", [][]fileCall{create, sync[:1]}, []string{none, "one"}},
		{"the content is not", [][]fileCall{create, sync[1:]}, []string{"", "o", "on", "one", "\x00\x00\x00"}},
		{"both are", [][]fileCall{create, sync}, []string{"one"}},
		{"it is replaced", [][]fileCall{create, sync, replace}, []string{"one", "two"}},
		{"it is replaced and synced", [][]fileCall{create, sync, replace, sync[1:]}, []string{"two"}},
		{"it is cut", [][]fileCall{create, sync, {{kind: callTruncate, path: "/d/a", size: 1}}}, []string{"one", "o"}},
		{"it is removed", [][]fileCall{create, sync, {{kind: callRemove, path: "/d/a"}}}, []string{"one", none}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk("/d")
			for _, calls := range tt.calls {
				for _, c := range calls {
					require.NoError(t, d.apply(c))
				}
			}
			left, want := map[string]bool{}, map[string]bool{}
			for seed := range uint64(2000) {
				content := none
				if a := d.root.survivor(rand.New(rand.NewPCG(seed, 0))).names["a"]; a != nil {
					content = string(a.data)
				}
				left[content] = true
			}
			for _, content := range tt.want {
				want[content] = true
			}
			assert.Equal(t, want, left)
		})
	}
}
