package fleet_test

import (
	"strconv"
	"testing"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/stretchr/testify/assert"
)

func TestJobs(t *testing.T) {
	member := func(id, experiment, host string, rank, ranks int, manifest string) fleet.Member {
		return fleet.Member{ID: id, Identity: fleet.Identity{Experiment: experiment, Backend: "native", Rank: rank, WorldSize: ranks, Host: host}, Manifest: manifest}
	}
	jobs := fleet.Jobs([]fleet.Member{
		member("a-1-x", "a", "n2", 1, 4, "m1"), member("a-0-x", "a", "n1", 0, 4, "m1"), member("a-3-x", "a", "n2", 3, 4, "m2"),
		member("b-0-x", "b", "n1", 0, 1, "m1"), member("b-0-y", "b", "n1", 0, 1, "m1"),
		member("a-0-y", "a", "n3", 0, 4, "m1"),
		member("c-0-x", "c", "n1", 0, 2, "m1"), member("c-1-x", "c", "n1", 1, 2, "m1"),
	})
	var got [][]string
	for _, j := range jobs {
		got = append(got, []string{j.Name(), j.Ranks(), j.Hosts(), j.Common(func(m fleet.Member) string { return m.Manifest }), strconv.Itoa(len(j))})
	}
	assert.Equal(t, [][]string{
		{"a", "0-1,3 of 4", "2 hosts", "m1,m2", "3"},
		{"b-0-x", "0/1", "n1", "m1", "1"},
		{"b-0-y", "0/1", "n1", "m1", "1"},
		{"a", "0 of 4", "n3", "m1", "1"},
		{"c", "0-1 of 2", "n1", "m1", "2"},
	}, got)
}
