package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/durable"
)

// FileName is the name of a file with settings.
const FileName = "primus.yaml"

// EnvFile names the variable that names the file to read in place of those of project and user;
// none reads no file.
const EnvFile = "PRIMUS_CLI_CONFIG"

// File is a file with settings.
type File struct {
	Scope Scope         `json:"scope"`
	Path  string        `json:"path"`
	Found bool          `json:"found"`
	keys  *document.Map // by the name of the flag
}

// Load reads the files that apply in a directory. The error joins every fault. It ends with ctx.
func Load(ctx context.Context, dir string) (*Settings, error) {
	s := &Settings{dir: dir}
	only := os.Getenv(EnvFile)
	switch only {
	case "":
		s.Files = append(s.Files, File{Scope: Project, Path: s.fromHere(nearest(dir))})
		if config, err := os.UserConfigDir(); err == nil {
			s.Files = append(s.Files, File{Scope: User, Path: filepath.Join(config, "primus", FileName)})
		}
	case "none":
	default:
		s.Files = append(s.Files, File{Scope: Project, Path: only})
	}
	var faults []error
	for i := range s.Files {
		f := &s.Files[i]
		err := f.read(ctx, dir, only == "")
		if errors.Is(err, fs.ErrNotExist) {
			if only == "" {
				continue
			}
			err = fmt.Errorf("%s: %q does not exist, want a file or none", EnvFile, f.Path)
		}
		faults = append(faults, err)
	}
	return s, errors.Join(faults...)
}

// nearest returns the file in dir or the nearest directory above it, or the file in dir if there is
// none.
func nearest(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		file := filepath.Join(at, FileName)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
		if at == filepath.Dir(at) {
			return filepath.Join(dir, FileName)
		}
	}
}

// read reads the file. Unless it was named, it must belong to the user or to root.
func (f *File) read(ctx context.Context, dir string, checkOwner bool) (err error) {
	path := f.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	handle, err := durable.OpenRegular(path)
	if irregular, ok := errors.AsType[*durable.IrregularError](err); ok {
		return fmt.Errorf("%s: given %s, want a YAML file", f.Path, irregular.Kind())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	info, err := handle.Stat()
	if err != nil {
		return err
	}
	if checkOwner && foreign(info) {
		return fmt.Errorf("%s belongs to another user and could change what commands do: name it in %s to use it, or set that to none", f.Path, EnvFile)
	}
	text, err := io.ReadAll(io.LimitReader(handle, document.MaxSize+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	f.Found = true
	f.keys, err = parse(ctx, f.Path, text)
	return err
}

// parse reads the text of a file into a map by the names of flags.
func parse(ctx context.Context, file string, text []byte) (*document.Map, error) {
	if empty(text) {
		return &document.Map{}, nil
	}
	root, duplicates, err := formats.All().Parse(ctx, file, text)
	if err != nil {
		return nil, err
	}
	keys, ok := root.Map()
	if !ok {
		return nil, document.WrongType(root, "", "a mapping from flags to values", "")
	}
	var faults []error
	for _, d := range duplicates {
		faults = append(faults, twice(d.Key, d.Kept, d.Dropped))
	}
	var named document.Builder
	places := map[string]document.Value{}
	for key, value := range keys.All() {
		name := strings.ReplaceAll(key, "_", "-")
		if first, again := places[name]; again {
			faults = append(faults, twice(key, value, first))
		}
		places[name] = value
		if _, err := texts(value); err != nil {
			faults = append(faults, &document.Error{Origin: value.Origin(), Path: key, Problem: err.Error()})
		}
		named.Set(name, value)
	}
	return named.Map(), errors.Join(faults...)
}

// empty reports whether a file has comments only.
func empty(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

func twice(key string, later, first document.Value) error {
	return &document.Error{Origin: later.Origin(), Path: key, Problem: fmt.Sprintf("is given twice, first at %s; keep one", first.Origin())}
}

// texts returns a value as a flag takes it: one text, or one for each item of a list.
func texts(v document.Value) ([]string, error) {
	items, isList := v.List()
	if !isList {
		items = []document.Value{v}
	}
	var all []string
	for _, item := range items {
		switch item.Kind() {
		case document.KindNull:
			return nil, errors.New("given null, want a value; leave the key out to change nothing")
		case document.KindMap, document.KindList:
			return nil, fmt.Errorf("given %s, want a value or a list of values", item.Describe())
		}
		all = append(all, item.Text())
	}
	return all, nil
}
