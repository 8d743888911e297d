package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDevicesOfRanks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		rank int
		want string
	}{
		{"opencl", 0, "opencl"},
		{"opencl", 2, "opencl:2"},
		{"opencl:0", 2, "opencl:0"},
		{" CPU ", 2, " CPU "},
		{"", 0, ""},
	} {
		assert.Equal(t, tt.want, DeviceName{Name: tt.name}.ofRank(tt.rank), "%q on rank %d", tt.name, tt.rank)
	}
}
