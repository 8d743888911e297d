#!/usr/bin/env bash
# Adds an op to a copy of the working tree, runs the tests that know every op, and lists the files
# that adding it has touched, with the number of lines added to each.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$copy"
cd "$copy"
git init -q
git add -A
git -c user.name=nobody -c user.email=nobody@example.com commit -qm before

cat >ops/norm/residual_sub.go <<'GO'
package norm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ResidualSubArgs are the arguments of ResidualSub.
type ResidualSubArgs struct {
	A      *tensor.Tensor `op:"0 a read compute [..]"`
	B      *tensor.Tensor `op:"1 b read =a [..]"`
	Output *tensor.Tensor `op:"2 output write =a [..] may=a,b"`
}

// ResidualSub subtracts two tensors of one shape: out = a − b. Dtypes and rounding are those of
// ResidualAdd.
var ResidualSub = opregistry.NewOp("residual_sub", opregistry.Schema[ResidualSubArgs]{
	Doc:       "elementwise difference of two tensors",
	Tolerance: opregistry.Arithmetic(0x1p-24, 0x1p-23, "one rounded difference"),
})
GO
cat >impls/reference/residual_sub.go <<'GO'
package reference

import "github.com/primus-fl/primus/ops/norm"

// residualSub implements norm.ResidualSub.
func residualSub(a norm.ResidualSubArgs) error {
	difference := a.A.Float64s()
	for i, b := range a.B.Float64s() {
		difference[i] -= b
	}
	return a.Output.SetFloat64s(difference)
}
GO
cat >ops/opscases/residual_sub.go <<'GO'
package opscases

import (
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func residualSubCases(d tensor.DType) []opstest.Case[norm.ResidualSubArgs] {
	var cases []opstest.Case[norm.ResidualSubArgs]
	for _, shape := range []tensor.Shape{{}, {0}, {3, 5}, {65, 129}} {
		cases = append(cases, opstest.Case[norm.ResidualSubArgs]{Name: shape.String(), Make: func(s *opstest.Stage) norm.ResidualSubArgs {
			return norm.ResidualSubArgs{A: s.In(opstest.Dense, d, shape...), B: s.In(opstest.Padded, d, shape...), Output: s.Out(opstest.Turned, d, shape...)}
		}})
	}
	return cases
}
GO
sed -i 's/^\t\tResidualAdd,$/&\n\t\tResidualSub,/' ops/norm/ops.go
sed -i 's/^\t\timpl(norm.ResidualAdd, .*/&\n\t\timpl(norm.ResidualSub, residualSub),/' impls/reference/impls.go
sed -i 's/^\t\t\topstest.Spec\[norm.ResidualAddArgs\].*/&\n\t\t\topstest.Spec[norm.ResidualSubArgs]{Op: norm.ResidualSub, Cases: residualSubCases}.Suite(),/' ops/opscases/kits.go
go generate ./vendors/abi
go test ./internal/oracle -run TestPageListsOps -update >tests.log

go test ./ops/... ./opmanager/... ./impls/reference ./vendors/abi >>tests.log 2>&1 || { cat tests.log; exit 1; }
go test -run 'Layout|Frozen' ./internal/plugin >>tests.log 2>&1 || { cat tests.log; exit 1; }
rm tests.log

git add -A
git diff --cached --numstat | awk '
	{ kind = $3 ~ /primus_op_args.h|layout.golden|coverage.md/ ? "generated" : "by hand"; places[kind]++; printf "%-9s  %3d lines  %s\n", kind, $1, $3 }
	END { printf "%d places by hand, %d generated\n", places["by hand"], places["generated"] }'
