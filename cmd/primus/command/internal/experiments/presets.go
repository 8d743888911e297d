package experiments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/suggest"
)

// Preset is a file that experiments take parameters from.
type Preset struct {
	Kind      string `json:"kind"`                // module, model or platform
	Framework string `json:"framework,omitempty"` // "" for a platform
	Name      string `json:"name"`                // for the keys config and model of an experiment
	Root      string `json:"root"`
	Text      string `json:"text"` // its first comment

	content string
}

// Content returns the text of the file.
func (p Preset) Content() string { return p.content }

// Presets lists the presets of all roots, those of --configs-dir first. A preset that another one
// of its name hides is left out.
func (o *PresetOptions) Presets() ([]Preset, error) {
	settings, err := o.settingsFor("")
	if err != nil {
		return nil, err
	}
	var all []Preset
	known := map[Preset]bool{}
	for _, root := range settings.Presets {
		err := fs.WalkDir(root.FS, ".", func(file string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && file == "." {
				return fs.SkipAll
			}
			if err != nil || d.IsDir() || !settings.Formats.Has(file) {
				return err
			}
			dir, name, _ := strings.Cut(file, "/")
			p := Preset{Kind: strings.TrimSuffix(dir, "s"), Name: strings.TrimSuffix(name, path.Ext(name))}
			if !slices.Contains([]string{"modules", "models", "platforms"}, dir) {
				return nil
			}
			if dir != "platforms" {
				p.Framework, p.Name, _ = strings.Cut(p.Name, "/")
			}
			if p.Name == "" || known[p] {
				return nil
			}
			known[p] = true
			text, err := readPreset(root.FS, file)
			if err != nil {
				return fmt.Errorf("read the preset %s: %w", path.Join(root.Name, file), err)
			}
			p.Root, p.content, p.Text = root.Name, string(text), firstComment(string(text))
			all = append(all, p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b Preset) int {
		return strings.Compare(a.Framework+"\x00"+a.Kind+"\x00"+a.Name, b.Framework+"\x00"+b.Kind+"\x00"+b.Name)
	})
	return all, nil
}

// readPreset returns the content of a preset, of one that is too long its beginning.
func readPreset(root fs.FS, file string) (text []byte, err error) {
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, document.MaxSize))
}

// firstComment returns the first sentence of the comment that a file begins with.
func firstComment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		words = append(words, strings.TrimSpace(comment))
	}
	sentence, _, more := strings.Cut(strings.Join(words, " "), ". ")
	if more {
		sentence += "."
	}
	return sentence
}

// FindPresets returns the presets that a name means: NAME, FRAMEWORK/NAME or KIND/FRAMEWORK/NAME as
// in the source tree, with or without extension.
func FindPresets(all []Preset, name string) ([]Preset, error) {
	wanted := strings.TrimSuffix(name, path.Ext(name))
	var found []Preset
	var names []string
	for _, p := range all {
		long := path.Join(p.Kind+"s", p.Framework, p.Name)
		if wanted == p.Name || wanted == path.Join(p.Framework, p.Name) || wanted == long {
			found = append(found, p)
		}
		names = append(names, p.Name)
	}
	if len(found) == 0 {
		return nil, cli.UsageError{Err: fmt.Errorf("no preset %q%s; primus presets list shows all", name, suggest.Hint(wanted, names))}
	}
	return found, nil
}
