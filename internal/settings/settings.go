package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Scope is where a value comes from.
type Scope string

// The scopes, the strongest first.
const (
	Flag        Scope = "flag"
	Environment Scope = "environment"
	Project     Scope = "project"
	User        Scope = "user"
	Default     Scope = "default"
)

// Settings are the files that apply in a directory.
type Settings struct {
	Files []File // the strongest first
	dir   string
}

// Value is what one source gives a flag.
type Value struct {
	Scope Scope    `json:"scope"`
	Texts []string `json:"value"` // one, or those of a flag that may be repeated
	Where string   `json:"where"` // flag, variable, or file with line and column; "" for the default
}

// Setting is a flag with the values of its sources, the strongest first.
type Setting struct {
	Name   string
	Values []Value
	flag   *pflag.Flag
}

// Variable returns the environment variable of a flag.
func Variable(name string) string {
	return envPrefix + "_" + strings.ToUpper(envKey.Replace(name))
}

const envPrefix = "PRIMUS"

var envKey = strings.NewReplacer("-", "_")

// Check returns an error for each key of a file that is not one of these names. perCall are the
// flags that a file cannot set.
func (s *Settings) Check(names, perCall []string) error {
	var faults []error
	for _, f := range s.Files {
		for key, value := range f.keys.All() {
			if slices.Contains(names, key) {
				continue
			}
			fault := &document.Error{Origin: value.Origin(), Path: key, Problem: "unknown key, want the name of a flag; primus config cli lists them"}
			if slices.Contains(perCall, key) {
				fault.Problem = fmt.Sprintf("--%s has to be given with a command, and has no default in a file", key)
			} else {
				fault.Hint = suggest.Question(key, names)
			}
			faults = append(faults, fault)
		}
	}
	return errors.Join(faults...)
}

// Resolve returns the flags that takes accepts, by name, with the value of each source.
func (s *Settings) Resolve(flags *pflag.FlagSet, takes func(*pflag.Flag) bool) ([]Setting, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"), viper.EnvKeyReplacer(envKey))
	v.SetEnvPrefix(envPrefix)
	v.AutomaticEnv()
	var all []Setting
	var faults []error
	files := make([]map[string]any, len(s.Files))
	flags.VisitAll(func(f *pflag.Flag) {
		if !takes(f) {
			return
		}
		faults = append(faults, v.BindPFlag(f.Name, f))
		all = append(all, Setting{Name: f.Name, flag: f})
		for i, file := range s.Files {
			value, ok := file.keys.Lookup(f.Name)
			if !ok {
				continue
			}
			given, err := s.fromFile(file, f, value)
			faults = append(faults, err)
			if files[i] == nil {
				files[i] = map[string]any{}
			}
			files[i][f.Name] = given
		}
	})
	for _, keys := range slices.Backward(files) {
		faults = append(faults, v.MergeConfigMap(keys))
	}
	for i := range all {
		all[i].Values = s.values(v, all[i].flag, files)
	}
	return all, errors.Join(faults...)
}

// fromFile returns the value of a flag in a file, with paths relative to the working directory.
func (s *Settings) fromFile(file File, f *pflag.Flag, value document.Value) ([]string, error) {
	given, err := texts(value)
	if err != nil {
		return nil, &document.Error{Origin: value.Origin(), Path: f.Name, Problem: err.Error()}
	}
	if _, repeated := f.Value.(pflag.SliceValue); !repeated && value.Kind() == document.KindList {
		return nil, &document.Error{Origin: value.Origin(), Path: f.Name, Problem: "given a list, want one value"}
	}
	if placeholder, _ := pflag.UnquoteUsage(f); placeholder == "FILE" || placeholder == "DIR" {
		for i, path := range given {
			if path != "" && !filepath.IsAbs(path) {
				given[i] = s.fromHere(filepath.Join(filepath.Dir(file.Path), path))
			}
		}
	}
	return given, nil
}

// fromHere returns a path relative to the working directory if it is below that.
func (s *Settings) fromHere(path string) string {
	if below, err := filepath.Rel(s.dir, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// values lists the values of a flag in the sources of v, the strongest first.
func (s *Settings) values(v *viper.Viper, f *pflag.Flag, files []map[string]any) []Value {
	var all []Value
	add := func(scope Scope, given any, where string) {
		all = append(all, Value{Scope: scope, Texts: asTexts(given, f), Where: where})
	}
	if f.Changed {
		add(Flag, v.Get(f.Name), "--"+f.Name)
	}
	if text := os.Getenv(Variable(f.Name)); text != "" {
		add(Environment, text, Variable(f.Name))
	}
	for i, file := range s.Files {
		if given, ok := files[i][f.Name]; ok {
			value, _ := file.keys.Lookup(f.Name)
			add(file.Scope, given, value.Origin().String())
		}
	}
	if len(all) > 0 {
		all[0].Texts = asTexts(v.Get(f.Name), f)
	}
	return append(all, Value{Scope: Default, Texts: defaultTexts(f)})
}

// asTexts returns the texts of a value of viper.
func asTexts(given any, f *pflag.Flag) []string {
	switch given := given.(type) {
	case []string:
		return given
	case string:
		if f.Value.Type() == "stringArray" {
			return filepath.SplitList(given)
		}
		return []string{given}
	}
	return []string{fmt.Sprint(given)}
}

// defaultTexts returns the default of a flag; pflag writes that of a list as [a,b].
func defaultTexts(f *pflag.Flag) []string {
	list, isList := strings.CutPrefix(f.DefValue, "[")
	if _, repeated := f.Value.(pflag.SliceValue); !repeated || !isList {
		return []string{f.DefValue}
	}
	return strings.FieldsFunc(strings.TrimSuffix(list, "]"), func(r rune) bool { return r == ',' })
}

// Apply sets the flag of a setting that was not given. wants says what a flag takes.
func (s Setting) Apply(flags *pflag.FlagSet, wants func(*pflag.Flag) string) error {
	source := s.Values[0]
	if source.Scope == Flag || source.Scope == Default {
		return nil
	}
	for _, text := range source.Texts {
		if err := flags.Set(s.Name, text); err != nil {
			return fmt.Errorf("%s: given %q, want %s", source.place(s.Name), text, wants(s.flag))
		}
	}
	if s.flag.Annotations == nil {
		s.flag.Annotations = map[string][]string{}
	}
	place := source.place(s.Name)
	if source.Scope == Environment {
		place = "environment " + place
	}
	s.flag.Annotations[origin] = []string{place}
	return nil
}

// origin marks a flag that Apply set with the place of its value.
const origin = "primus_origin"

// Origin returns the place from which Apply took the value of a flag, or the flag itself.
func Origin(f *pflag.Flag) string {
	if place := f.Annotations[origin]; len(place) > 0 {
		return place[0]
	}
	return "flag --" + f.Name
}

// place names a value in errors.
func (v Value) place(name string) string {
	if v.Scope == Environment {
		return v.Where
	}
	return v.Where + ": " + name
}
