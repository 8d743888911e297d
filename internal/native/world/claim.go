package world

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/primus-fl/primus/opmanager"
)

// Claim is what has to be the same on all ranks.
type Claim struct {
	Version    string             `json:"version"`
	Program    string             `json:"program"` // checksum of its file
	Data       string             `json:"data"`
	Parameters map[string]string  `json:"parameters"`
	Manifest   opmanager.Manifest `json:"manifest"`
}

// Compare returns a *CommonError on all ranks if one of them would compute otherwise than the first
// one. One rank alone claims nothing.
func (w *World) Compare(own func() Claim) error {
	if w.Alone() {
		return nil
	}
	const what = "compare the ranks"
	text, err := json.Marshal(own())
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	all, err := w.Gather(what, text)
	if err != nil {
		return fmt.Errorf("the %d ranks cannot reach each other: %w; install MPICH, or start all ranks with mpirun of Open MPI or mpiexec of MPICH", w.Ranks, err)
	}
	return compareClaims(all)
}

// compareClaims is Compare for the claims of all ranks as they were sent.
func compareClaims(all [][]byte) error {
	claims := make([]Claim, len(all))
	for i, text := range all {
		if err := json.Unmarshal(text, &claims[i]); err != nil {
			return fmt.Errorf("compare the ranks: rank %d: %w", i, err)
		}
	}
	var faults []error
	for i, c := range claims[1:] {
		if err := claims[0].check(c); err != nil {
			faults = append(faults, fmt.Errorf("rank %d differs from rank 0, so nothing was trained: %w", i+1, err))
		}
	}
	if faults != nil {
		return &CommonError{errors.Join(faults...)}
	}
	return nil
}

// check returns an error that joins every difference of another rank from this one.
func (c Claim) check(other Claim) error {
	var faults []error
	differs := func(what, first, second string) {
		if first != second {
			faults = append(faults, fmt.Errorf("%s: given %s, want %s as on rank 0", what, cmp.Or(second, "nothing"), cmp.Or(first, "nothing")))
		}
	}
	if c.Version != other.Version {
		differs("version of primus", c.Version, other.Version)
	} else {
		differs("program (SHA-256 of its file)", c.Program, other.Program)
	}
	differs("fingerprint of the data", c.Data, other.Data)
	names := map[string]string{}
	maps.Copy(names, c.Parameters)
	maps.Copy(names, other.Parameters)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differs(name, c.Parameters[name], other.Parameters[name])
	}
	return errors.Join(append(faults, c.Manifest.Check(other.Manifest))...)
}
