package plugins_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
)

// goTool skips a test where there is no go command.
func goTool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
}

// TestPluginsBuild builds a program with the example, trains with it, and has it build another one.
func TestPluginsBuild(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	goTool(t)
	t.Setenv("GOPROXY", "off") // the cache of modules is enough
	example, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "..", "examples", "outtree_go"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "primus-acme")
	const module = "example.com/acme/primus-ops"
	got := commandtest.Run(t, "plugins", "build", "--with", module+"="+example, "--output", file)
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, module+` +- +`+example, got.Out)
	assert.Contains(t, got.Out, "built "+file)
	assert.Empty(t, commandtest.Leftovers(t, filepath.Dir(file)))

	l := commandtest.NewLab(t)
	cmd := exec.Command(file, l.Args("train_iters=2")...)
	cmd.Env = append(os.Environ(), "TE_FL_PER_OP=rmsnorm_fwd=vendor:acme;rmsnorm_bwd=vendor:acme")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.Regexp(t, `rmsnorm_bwd +vendor\.acme`, string(text))
	assert.Len(t, l.Records(), 2)

	t.Chdir(t.TempDir()) // the program knows what it was built from
	text, err = exec.Command(file, "plugins", "build", "--with", module+"="+example, "--output", "again").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.FileExists(t, "again")
}

const moduleSource = `package acme

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
)

func Source() opregistry.Source {
	return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: norm.RMSNormFwd, ID: "default.flagos", Kind: opregistry.KindVendor, Vendor: "acme",
		Run: opregistry.Func[norm.RMSNormFwdArgs](func(*opregistry.Exec, norm.RMSNormFwdArgs) error { return nil }),
	}}}
}
`

func TestPluginsBuildNamesTheModuleAtFault(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	goTool(t)
	t.Setenv("GOPROXY", "off")
	const module = "example.com/acme/ops/v2"
	tests := []struct {
		name  string
		files map[string]string // besides go.mod
		want  []string
	}{
		{name: "no package", want: []string{module, "no Go files in"}},
		{name: "no source", files: map[string]string{"a.go": "package acme\n\nfunc Source() int { return 1 }\n"},
			want: []string{module, "package acme exports no source of ops", "func Source() opregistry.Source"}},
		{name: "sources that are none", files: map[string]string{"a.go": `package acme

import "github.com/primus-fl/primus/opregistry"

type T struct{}

func source() opregistry.Source        { return opregistry.Source{} }
func (T) Source() opregistry.Source    { return opregistry.Source{} }
func Of(int) opregistry.Source         { return opregistry.Source{} }
func Both() (opregistry.Source, error) { return opregistry.Source{}, nil }
`}, want: []string{module, "exports no source of ops"}},
		{name: "two sources", files: map[string]string{"a.go": moduleSource, "b.go": `package acme

import registry "github.com/primus-fl/primus/opregistry"

func More() registry.Source { return registry.Source{} }
`}, want: []string{module, "exports 2 sources of ops (Source, More)"}},
		{name: "a program", files: map[string]string{"a.go": "package main\n\nfunc main() {}\n"}, want: []string{module, "is a program"}},
		{name: "does not parse", files: map[string]string{"a.go": "package acme\n\nfunc {\n"}, want: []string{module, "a.go:3"}},
		{name: "does not compile", files: map[string]string{"a.go": moduleSource, "b.go": "package acme\n\nvar x int = nothing\n"},
			want: []string{"module " + module + " does not compile", "b.go:3:13: undefined: nothing"}},
		{name: "duplicate id", files: map[string]string{"a.go": moduleSource},
			want: []string{"module " + module, `impl "default.flagos" of op "rmsnorm_fwd"`, "not kept"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"go.mod": "// A module.\nmodule " + module + "\n\ngo 1.26.0\n"}
			for name, text := range tt.files {
				files[name] = text
			}
			for name, text := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			output := filepath.Join(t.TempDir(), "primus")
			got := commandtest.Run(t, "plugins", "build", "--with", module+"="+dir, "--output", output)
			assert.Equal(t, 1, got.Code)
			for _, want := range tt.want {
				assert.Contains(t, got.Stderr, want)
			}
			entries, err := os.ReadDir(filepath.Dir(output))
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}

func TestPluginsBuildBadArguments(t *testing.T) {
	goTool(t)
	t.Setenv("GOPROXY", "off")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/other\n"), 0o600))
	tests := []struct {
		args string
		code int
		want string
	}{
		{"", 2, "no module given"},
		{"--with =x", 2, `given "=x", want MODULE`},
		{"--with a@", 2, `given "a@"`},
		{"--with a=", 2, `given "a="`},
		{"--with ../a", 1, "module ../a"},
		{"--with a=" + dir + " --with a@v1", 2, `module "a" is in the program already`},
		{"--with github.com/primus-fl/primus=" + dir, 2, "in the program already"},
		{"--with a=" + dir + " --output " + dir, 2, "is a directory"},
		{"--with a=" + dir + " --primus =", 2, "--primus"},
		{"--with a=" + dir + " --primus " + dir, 1, `declares module "example.com/other"`},
		{"--with a=" + dir + " --primus " + dir, 1, `declares module "example.com/other"`},
		{"--with a=" + dir + " --primus v1.0.0=" + dir, 1, `declares module "example.com/other"`},
		{"--with a=" + dir + " --primus ./nothing", 1, "want the root of a Go module"},
		{"--with a=" + dir + " --primus nothing/./at/all", 1, "module github.com/primus-fl/primus@nothing/./at/all"},
		{"--with a=" + dir, 1, `declares module "example.com/other"`},
		{"--with a=/nonexistent", 1, "want the root of a Go module"},
		{"--with example.com/acme/nothing@v1.0.0", 1, "module example.com/acme/nothing@v1.0.0: "},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := commandtest.Run(t, append([]string{"plugins", "build"}, strings.Fields(tt.args)...)...)
			assert.Equal(t, tt.code, got.Code)
			assert.Contains(t, got.Stderr, tt.want)
		})
	}
}

// A main may bring sources of its own.
func TestMainWithExtras(t *testing.T) {
	source := func(id string) func() opregistry.Source {
		return func() opregistry.Source {
			return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
				Op: norm.ResidualAdd, ID: id, Kind: opregistry.KindVendor, Vendor: "acme",
				Run: opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }),
			}}}
		}
	}
	run := func(extra fx.Option, args ...string) commandtest.Outcome {
		var out, stderr primustest.Buffer
		code := command.Main(args, command.Streams{Out: &out, Err: &stderr}, extra)
		return commandtest.Outcome{Code: code, Out: out.String(), Stderr: stderr.String()}
	}
	got := run(command.Extra("example.com/acme", source("vendor.acme")), "ops", "list", "residual_add")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "vendor.acme")

	got = run(command.Extra("example.com/acme", source("vendor.acme")), "plugins", "list")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^acme +- +compiled in +example\.com/acme +- +1 of 1$`, got.Out)
	assert.Regexp(t, `(?m)^flagos +\S+ +compiled in +github\.com/primus-fl/primus\S* +- `, got.Out)

	got = run(command.Extra("example.com/acme", source("default.flagos")), "ops", "list")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), fmt.Sprintf("module example.com/acme: opregistry: impl %q", "default.flagos"))
}
