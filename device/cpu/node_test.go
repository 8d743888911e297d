package cpu

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadNodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give string
		want []int
	}{
		{"one", "0\n", []int{0}},
		{"range", "0-3\n", []int{0, 1, 2, 3}},
		{"gaps", "0,8\n", []int{0, 8}},
		{"ranges and numbers", "0-1,4,6-7\n", []int{0, 1, 4, 6, 7}},
		{"unordered with repetition", "3,0-1,1\n", []int{0, 1, 3}},
		{"empty", "\n", []int{0}},
		{"not a list", "none\n", []int{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := fstest.MapFS{"has_memory": {Data: []byte(tt.give)}, "online": {Data: []byte("0-63\n")}}
			assert.Equal(t, tt.want, readNodes(dir))
		})
	}
	t.Run("no such directory", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, []int{0}, readNodes(fstest.MapFS{}))
	})
}

func TestParseListErrors(t *testing.T) {
	t.Parallel()
	for _, give := range []string{"x", "1-", "-1", "3-1", "1,,2", "1 2", "0-99999999", "99999999999999999999", "1-2-3"} {
		t.Run(give, func(t *testing.T) {
			t.Parallel()
			got, err := parseList(give)
			require.EqualError(t, err, `cpu: node list "`+give+`": want numbers and ranges up to 65536, as in 0-3,8`)
			assert.Nil(t, got)
		})
	}
}

func TestNodesAreReadOnceAndNotByNew(t *testing.T) {
	t.Parallel()
	reads := 0
	b := newBackend(heapPager{}, func() []int { reads++; return []int{0} })
	assert.Zero(t, reads)
	for range 3 {
		require.NoError(t, b.SetDevice(0))
	}
	assert.Equal(t, 1, reads)
	require.NoError(t, b.Close())
}
