package placement

import (
	"context"
	_ "embed" // for the defaults
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/internal/suggest"
)

// UserFile is the launcher file in the home directory of a user.
const UserFile = ".primus.yaml"

//go:embed defaults.yaml
var defaults []byte

// defaultsName stands for the file in origins.
const defaultsName = "defaults.yaml"

// Settings are the values of all layers. Options of other programs, such as sbatch or docker, have
// their own names.
type Settings struct {
	Slurm      Slurm
	Container  Container
	Kubernetes Kubernetes
	Direct     Direct
	Warnings   []document.Warning // keys that have no effect here
	merged     *document.Map
	file       string   // that was given, as an absolute path
	given      []string // options
}

// Slurm is how a Slurm job is submitted.
type Slurm struct {
	Command     string   `param:"command"` // sbatch or srun; "" is srun inside of an allocation, else sbatch
	Nodes       int      `param:"nodes"`
	GPUsPerNode int      `param:"gpus-per-node"`
	Setup       []string `param:"setup"` // lines of shell before srun
	Env         []string `param:"env"`
	Options     []Option // of sbatch
}

// Container is how a container is started.
type Container struct {
	Runtime string   `param:"runtime"` // docker or podman; "" is the first of them that is installed
	Program string   `param:"program"` // primus in the image; "" mounts that of this machine
	Image   string   `param:"image"`
	Name    string   `param:"name"`
	Env     []string `param:"env"` // NAME=VALUE, or NAME for one that is passed on
	Device  []string `param:"device"`
	Volume  []string `param:"volume"`
	Options []Option // of docker run

	optional []string // devices of the defaults, which may be missing
}

// Kubernetes is what the manifest of a job says.
type Kubernetes struct {
	Name             string            `param:"name"` // "" is made from that of the experiment
	Namespace        string            `param:"namespace"`
	Image            string            `param:"image"`
	Program          string            `param:"program"` // primus in the image
	Device           string            `param:"device"`  // the resource that stands for a GPU
	CPU              string            `param:"cpu"`
	Memory           string            `param:"memory"`
	Shm              string            `param:"shm"` // the size of /dev/shm
	Env              []string          `param:"env"`
	Secret           string            `param:"secret"` // the name of the Kubernetes secret with tokens and keys
	Volume           []string          `param:"volume"` // CLAIM:/path or /host:/path, with :ro
	NodeSelector     map[string]string `param:"node-selector"`
	ServiceAccount   string            `param:"service-account"`
	ImagePullSecret  string            `param:"image-pull-secret"`
	PriorityClass    string            `param:"priority-class"`
	RuntimeClass     string            `param:"runtime-class"`
	HostNetwork      bool              `param:"host-network"`
	Privileged       bool              `param:"privileged"`
	TTLAfterFinished *int              `param:"ttl-seconds-after-finished"`
	ActiveDeadline   *int              `param:"active-deadline-seconds"`
}

// Direct is how the processes of a node are started.
type Direct struct {
	GPUsPerNode int    `param:"gpus-per-node"`
	Nodes       int    `param:"nnodes"`
	MasterAddr  string `param:"master-addr"`
	MasterPort  int    `param:"master-port"`
}

// Option is an option of another program.
type Option struct {
	Name   string
	Values []string // none for one that is given alone
}

// Words returns the option as words of a command line.
func (o Option) Words() []string {
	if len(o.Values) == 0 {
		return []string{"--" + o.Name}
	}
	var words []string
	for _, v := range o.Values {
		words = append(words, "--"+o.Name+"="+v)
	}
	return words
}

// withoutEffect are keys of Primus for things that primus does not do.
var withoutEffect = map[string]string{
	"main.debug":        "PRIMUS_LOG_LEVEL=DEBUG says more",
	"main.dry-run":      "give --dry-run",
	"slurm.debug":       "PRIMUS_LOG_LEVEL=DEBUG says more",
	"slurm.dry-run":     "give --dry-run",
	"container.debug":   "PRIMUS_LOG_LEVEL=DEBUG says more",
	"container.dry-run": "give --dry-run",
	"direct.debug":      "PRIMUS_LOG_LEVEL=DEBUG says more",
	"direct.run-mode":   "--launcher says how processes are started",
	"direct.script":     "primus starts the framework itself",
	"direct.numa":       "processes are not bound to NUMA nodes",
	"direct.log-file":   "the log is in the run directory",
	"direct.patch":      "patches are those of primus patches list",
	"direct.env":        "variables belong into the env block of the experiment",
}

// Load reads the layers, the later ones over the earlier: defaults, the file of the user, a file
// ("" for none), and options such as slurm.partition=gpu.
func Load(ctx context.Context, formats *document.Formats, home, file string, options []string) (*Settings, error) {
	base, _, err := formats.Parse(ctx, defaultsName, defaults)
	if err != nil {
		return nil, err
	}
	layers := []document.Value{base}
	for _, path := range []string{filepath.Join(home, UserFile), file} {
		if path == "" || path == UserFile {
			continue
		}
		if _, err := os.Stat(path); err != nil && path != file {
			continue // there is none, or the home directory is somebody else's
		}
		text, err := document.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("launcher file: %w", err)
		}
		layer, duplicates, err := formats.Parse(ctx, path, text)
		if err != nil {
			return nil, err
		}
		if len(duplicates) > 0 {
			d := duplicates[0]
			return nil, &document.Error{Origin: d.Kept.Origin(), Path: d.Key, Problem: fmt.Sprintf("is given twice, first at %s; keep one", d.Dropped.Origin())}
		}
		layers = append(layers, layer)
	}
	for _, option := range options { // each a layer, so that lists add up
		if _, variable, ok := strings.Cut(option, "env="); ok {
			if name, value, _ := strings.Cut(variable, "="); secret.Value(name, value) {
				return nil, fmt.Errorf("--launcher-option %s=***: it would be on a command line that everybody can read; set the variable and give its name alone", option[:len(option)-len(variable)]+name)
			}
		}
		given, _, err := document.ParseOverrides([]string{option})
		if err != nil {
			return nil, fmt.Errorf("--launcher-option: %w", err)
		}
		layers = append(layers, document.MapValue(given))
	}
	merged := &document.Map{}
	for _, layer := range layers {
		m, ok := layer.Map()
		if !ok {
			return nil, document.WrongType(layer, "", "a mapping with sections such as slurm and container", "")
		}
		merged = merge(merged, normal(m))
	}
	s, err := decode(merged)
	if err == nil && file != "" {
		s.file, err = filepath.Abs(file)
	}
	if err == nil {
		s.given = options
	}
	return s, err
}

// normal writes the keys of sections with dashes, and the options of a container into its section.
func normal(m *document.Map) *document.Map {
	var sections document.Builder
	for name, v := range m.All() {
		section, ok := v.Map()
		if !ok {
			sections.Set(name, v)
			continue
		}
		var keys document.Builder
		for key, value := range section.All() {
			if nested, ok := value.Map(); ok && name == launch.Container && key == "options" {
				for key, value := range nested.All() {
					keys.Set(strings.ReplaceAll(key, "_", "-"), value)
				}
				continue
			}
			keys.Set(strings.ReplaceAll(key, "_", "-"), value)
		}
		sections.Set(name, document.MapValue(keys.Map()))
	}
	return sections.Map()
}

// cumulative are the keys whose values of all layers count; an empty list drops those of the layers
// before.
var cumulative = []string{"device", "cap-add", "volume", "env", "setup"}

// merge puts the sections of a layer over those of the layers before it.
func merge(base, over *document.Map) *document.Map {
	result := document.NewBuilder(base)
	for name, v := range over.All() {
		old, _ := base.Lookup(name)
		before, _ := old.Map()
		section, ok := v.Map()
		if !ok {
			if !v.IsNull() {
				result.Set(name, v)
			}
			continue
		}
		keys := document.NewBuilder(before)
		for key, value := range section.All() {
			if slices.Contains(cumulative, key) && name != launch.Kubernetes || name == launch.Kubernetes && (key == "env" || key == "volume") {
				value = added(before, key, value)
			}
			keys.Set(key, value)
		}
		result.Set(name, document.MapValue(keys.Map()))
	}
	return result.Map()
}

// added returns a list after that of the layers before.
func added(before *document.Map, key string, value document.Value) document.Value {
	items, isList := value.List()
	if !isList && !value.IsNull() {
		items = []document.Value{value}
	}
	if old, ok := before.Lookup(key); ok && len(items) > 0 {
		earlier, _ := old.List()
		items = slices.Concat(earlier, items)
	}
	return document.ListValue(items).At(value.Origin())
}

// decode reads the merged sections.
func decode(merged *document.Map) (*Settings, error) {
	s := &Settings{merged: merged}
	sections := map[string]any{
		launch.Slurm: &s.Slurm, launch.Container: &s.Container, launch.Kubernetes: &s.Kubernetes, launch.Direct: &s.Direct, "main": &struct{}{},
	}
	names := []string{"direct", "container", "kubernetes", "main", "slurm"}
	var faults []error
	for name, v := range merged.All() {
		into, known := sections[name]
		if !known {
			faults = append(faults, &document.Error{
				Origin: v.KeyOrigin(), Path: name, Problem: "unknown section, want one of " + strings.Join(names, ", "), Hint: suggest.Question(name, names),
			})
			continue
		}
		section, isMap := v.Map()
		if !isMap {
			faults = append(faults, document.WrongType(v, name, "a mapping", ""))
			continue
		}
		unknown, err := document.Decode(section, into)
		faults = append(faults, err)
		for _, u := range unknown {
			value, _ := section.Lookup(u.Path)
			path := name + "." + u.Path
			if hint, ignored := withoutEffect[path]; ignored {
				if items, _ := value.List(); len(items) > 0 || !slices.Contains([]string{"", "false", "auto"}, value.Text()) {
					s.Warnings = append(s.Warnings, document.Warning{Origin: value.Origin(), Path: path, Message: "has no effect", Hint: hint})
				}
				continue
			}
			switch name {
			case launch.Slurm:
				s.Slurm.Options, err = withOption(s.Slurm.Options, path, u.Path, value)
			case launch.Container:
				s.Container.Options, err = withOption(s.Container.Options, path, u.Path, value)
			default:
				err = &document.Error{Origin: value.Origin(), Path: path, Problem: "unknown key", Hint: u.Nearest}
			}
			faults = append(faults, err)
		}
	}
	if !slices.Contains([]string{"", "sbatch", "srun"}, s.Slurm.Command) {
		faults = append(faults, s.fault("slurm.command", "given %q, want sbatch or srun", s.Slurm.Command))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	devices, _ := merged.Get("container.device")
	items, _ := devices.List()
	for _, item := range items {
		if item.Origin().File == defaultsName {
			s.Container.optional = append(s.Container.optional, item.Text())
		}
	}
	return s, nil
}

// fault is a mistake in a value of the settings.
func (s *Settings) fault(path, format string, args ...any) error {
	origin, _ := s.merged.Origin(path)
	return &document.Error{Origin: origin, Path: path, Problem: fmt.Sprintf(format, args...)}
}

// withOption adds an option of another program: false and null leave it out, and true gives it
// alone.
func withOption(options []Option, path, name string, v document.Value) ([]Option, error) {
	items, isList := v.List()
	if !isList {
		items = []document.Value{v}
	}
	if v.Kind() == document.KindMap {
		return options, document.WrongType(v, path, "a value or a list of values", "")
	}
	o := Option{Name: name}
	for _, item := range items {
		switch text := item.Text(); {
		case item.IsNull(), strings.EqualFold(text, "false"):
			return options, nil
		case strings.EqualFold(text, "true"):
			return append(options, Option{Name: name}), nil
		default:
			if secret.Value(name, text) {
				return options, &document.Error{Origin: item.Origin(), Path: path, Problem: "is a secret, and would be on a command line that everybody can read"}
			}
			o.Values = append(o.Values, text)
		}
	}
	if len(o.Values) == 0 {
		return options, nil
	}
	return append(options, o), nil
}

// Value is a value of the settings with the place where it was written.
type Value struct {
	Path, Text, Source string
}

// Values lists the values of the sections of these launchers.
func (s *Settings) Values(launchers ...string) []Value {
	var all []Value
	for name, v := range s.merged.All() {
		section, _ := v.Map()
		if !slices.Contains(launchers, name) {
			continue
		}
		for key, value := range section.All() {
			items, isList := value.List()
			if !isList {
				items = []document.Value{value}
			}
			for _, item := range items {
				text := item.Text()
				if variable, value, ok := strings.Cut(text, "="); key == "env" && ok {
					text = variable + "=" + secret.Shown(variable, value)
				}
				all = append(all, Value{Path: name + "." + key, Text: text, Source: item.Origin().String()})
			}
		}
	}
	return all
}

// Complete fills in what neither flags nor the environment set about nodes.
func (s *Settings) Complete(o *launch.Options, lookup func(string) (string, bool)) {
	unset := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { text, _ := lookup(name); return text != "" })
	}
	first := func(into *int, values ...int) {
		for _, v := range values {
			if *into == 0 {
				*into = v
			}
		}
	}
	elsewhere, _, _ := launch.Chain(o.Launcher)
	inSlurm := slices.Contains(elsewhere, launch.Slurm)
	if unset("NNODES", "SLURM_JOB_ID") {
		if inSlurm {
			first(&o.Nodes, s.Slurm.Nodes)
		}
		first(&o.Nodes, s.Direct.Nodes)
	}
	if unset("GPUS_PER_NODE") {
		if inSlurm {
			first(&o.PerNode, s.Slurm.GPUsPerNode)
		}
		first(&o.PerNode, s.Direct.GPUsPerNode)
	}
	if unset("MASTER_PORT") {
		first(&o.MasterPort, s.Direct.MasterPort)
	}
	if o.MasterAddr == "" && unset("MASTER_ADDR", "SLURM_JOB_ID") {
		o.MasterAddr = s.Direct.MasterAddr
	}
}
