//go:build !invariants

package opmanager

import "github.com/primus-fl/primus/opregistry"

// The functions below do nothing here; a build with the tag invariants has their checks.

func (*table) checkInvariants() {}

func callExec(exec *opregistry.Exec) *opregistry.Exec { return exec }

func checkScratch(*opregistry.Exec, opregistry.Handle, *candidate) {}

func checkOwner[A any](*opregistry.Op[A], *candidate, *A) {}
