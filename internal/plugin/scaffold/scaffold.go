// Package scaffold writes projects with ops of a vendor: shared libraries and Go modules that build
// and pass the check as they are.
package scaffold

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/vendors/abi"
)

// templates holds a project for each language. NAME in a file's name stands for the vendor.
//
//go:embed all:templates
var templates embed.FS

// language says how a plugin is written in one.
type language struct {
	header bool     // it needs the header of the interface
	next   []string // commands that build and check the project NAME
}

func languages() map[string]language {
	return map[string]language{
		"c":      {header: true, next: []string{"make", "primus plugins check ./libNAME.so"}},
		"cpp":    {header: true, next: []string{"make", "primus plugins check ./libNAME.so"}},
		"go":     {next: []string{"go mod tidy", "go test ./...", "primus plugins build --with MODULE=. --output ./primus-NAME"}},
		"opencl": {header: true, next: []string{"make", "primus plugins check ./libNAME.so"}},
		"rust":   {header: true, next: []string{"cargo build --release", "primus plugins check target/release/libNAME_ops.so"}},
	}
}

// Languages returns the names of the languages, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(languages())) }

// Project is a project with an op of a vendor.
type Project struct {
	Language string // one of Languages
	Name     string // of the vendor
	Module   string // of a project in Go; "" is example.com/Name

	PrimusVersion string // that a project in Go requires
	PrimusDir     string // the directory that a project in Go has in place of this module, "" for none
}

// filler replaces the names in templates, written {{.Name}}, by what they stand for.
func (p Project) filler() *strings.Replacer {
	replace := ""
	if p.PrimusDir != "" {
		replace = fmt.Sprintf("\n\nreplace %s => %q", buildinfo.Module, p.PrimusDir)
	}
	return strings.NewReplacer(
		"{{.Name}}", p.Name,
		"{{.Module}}", cmp.Or(p.Module, "example.com/"+p.Name),
		"{{.Layout}}", fmt.Sprintf("0x%016x", plugin.LayoutHash(norm.ResidualAdd)), // for languages that cannot read it from the header
		"{{.PrimusModule}}", buildinfo.Module,
		"{{.PrimusVersion}}", p.PrimusVersion,
		"{{.PrimusReplace}}", replace,
	)
}

// projectName matches names that can be those of a vendor, a library and a package.
var projectName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Check returns what is wrong with the language or the names.
func (p Project) Check() error {
	switch _, ok := languages()[p.Language]; {
	case !ok:
		return fmt.Errorf("language %q: want one of %s", p.Language, strings.Join(Languages(), ", "))
	case !projectName.MatchString(p.Name) || token.IsKeyword(p.Name) || p.Name == "main":
		return fmt.Errorf("given the name %q, want a vendor such as acme: a letter, then letters, digits and _ in lower case, and no keyword", p.Name)
	case p.Module != "" && p.Language != "go":
		return fmt.Errorf("module: given %q for a project in %s; only one in go is a module", p.Module, p.Language)
	case p.Module != "" && !ValidPath(p.Module):
		return fmt.Errorf("module: given %q, want a path such as example.com/%s", p.Module, p.Name)
	}
	return nil
}

// Next returns the commands that build and check the project, in its directory.
func (p Project) Next() []string {
	module := cmp.Or(p.Module, "example.com/"+p.Name)
	var lines []string
	for _, line := range languages()[p.Language].next {
		lines = append(lines, strings.NewReplacer("NAME", p.Name, "MODULE", module).Replace(line))
	}
	return lines
}

// Write makes the project in a directory that does not exist, all of it or nothing.
func (p Project) Write(dir string) error {
	if err := p.Check(); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already, want the name of a new directory; see --dir", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := p.files()
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if err := durable.CheckWritable(filepath.Dir(dir)); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(work, dir)
}

// files returns the files of the project by name.
func (p Project) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	if languages()[p.Language].header {
		files["include/primus_op_plugin.h"] = []byte(abi.Header())
		files["include/primus_op_args.h"] = []byte(abi.ArgsHeader())
	}
	if p.PrimusDir != "" {
		sums, err := os.ReadFile(filepath.Join(p.PrimusDir, "go.sum"))
		if err == nil {
			files["go.sum"] = sums // go mod tidy keeps the lines that the module needs
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	root, fill := path.Join("templates", p.Language), p.filler()
	err := fs.WalkDir(templates, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templates.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
		files[strings.Replace(name, "NAME", p.Name, 1)] = []byte(fill.Replace(string(text)))
		return nil
	})
	return files, err
}
