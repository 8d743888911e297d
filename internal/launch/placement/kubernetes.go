package placement

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
)

const (
	configDir      = "/etc/primus"     // where a pod has the experiment
	experimentFile = "experiment.yaml" // in it
	maxConfig      = 1 << 20           // bytes that a ConfigMap can hold
	maxName        = 52                // characters of the name of a job, which those of its pods extend
	podGrace       = 15                // seconds that a pod has beyond the grace period of the run
)

// manifest collects what becomes the objects of a run.
type manifest struct {
	r      *Run
	k      Kubernetes
	s      *Settings
	p      *Plan
	name   string
	config map[string]string // files by name
	faults []error
}

// kubernetes plans an Indexed Job with a pod for each node. The plan is the manifest.
func (r *Run) kubernetes(s *Settings, rest string) (*Plan, error) {
	m := &manifest{r: r, k: s.Kubernetes, s: s, p: &Plan{Launcher: launch.Kubernetes}, config: map[string]string{experimentFile: string(r.Resolved)}}
	m.name = objectName(cmp.Or(m.k.Name, r.Name))
	if m.k.Image == "" {
		m.fault("kubernetes.image", "given none, want the name of an image")
	}
	job := *r
	job.Overrides, job.Flags = nil, m.flags()
	more := []string{}
	if r.Nodes > 1 {
		more = append(more, fmt.Sprintf("--master-addr=%s-0.%s", m.name, m.name))
	}
	argv := job.args(cmp.Or(m.k.Program, r.Program), rest, more...)
	env := m.env()
	volumes, mounts := m.volumes()
	size := 0
	for _, text := range m.config {
		size += len(text)
	}
	if size > maxConfig {
		m.fault("kubernetes", "the experiment and the files of flags have %d bytes, want at most %d, which a ConfigMap holds", size, maxConfig)
	}
	if err := errors.Join(m.faults...); err != nil {
		return nil, err
	}
	labels := object{"app.kubernetes.io/name", "primus", "app.kubernetes.io/instance", m.name}
	meta := object{"name", m.name, "namespace", optional(m.k.Namespace), "labels", labels}
	data := object{}
	for _, name := range slices.Sorted(maps.Keys(m.config)) {
		data = append(data, name, m.config[name])
	}
	objects := []object{{"apiVersion", "v1", "kind", "ConfigMap", "metadata", meta, "data", data}}
	if r.Nodes > 1 {
		objects = append(objects, object{"apiVersion", "v1", "kind", "Service", "metadata", meta, "spec", object{
			"clusterIP", "None", "publishNotReadyAddresses", true, "selector", labels,
		}})
	}
	objects = append(objects, object{"apiVersion", "batch/v1", "kind", "Job", "metadata", meta, "spec", object{
		"completionMode", "Indexed", "completions", r.Nodes, "parallelism", r.Nodes, "backoffLimit", 0,
		"ttlSecondsAfterFinished", number(m.k.TTLAfterFinished), "activeDeadlineSeconds", number(m.k.ActiveDeadline),
		"template", object{"metadata", object{"labels", labels}, "spec", m.pod(argv, env, volumes, mounts)},
	}})
	var texts []string
	for _, o := range objects {
		var b strings.Builder
		writeObject(&b, "", o)
		texts = append(texts, b.String())
	}
	m.p.Manifest = strings.Join(texts, "---\n")
	return m.p, nil
}

// pod is what runs on a node.
func (m *manifest) pod(argv []string, env, volumes, mounts []any) object {
	limits := object{"cpu", optional(m.k.CPU), "memory", optional(m.k.Memory)}
	if m.r.Devices && m.k.Device != "" {
		limits = append(limits, m.k.Device, strconv.Itoa(m.r.PerNode))
	}
	var resources, security, selector, pulls any
	if len(limits) > 4 || m.k.CPU != "" || m.k.Memory != "" {
		resources = object{"limits", limits}
	}
	if m.k.Privileged {
		security = object{"privileged", true}
	}
	if len(m.k.NodeSelector) > 0 {
		labels := object{}
		for _, name := range slices.Sorted(maps.Keys(m.k.NodeSelector)) {
			labels = append(labels, name, m.k.NodeSelector[name])
		}
		selector = labels
	}
	if m.k.ImagePullSecret != "" {
		pulls = []any{object{"name", m.k.ImagePullSecret}}
	}
	var subdomain, hostNetwork, dns any
	if m.r.Nodes > 1 {
		subdomain = m.name
	}
	if m.k.HostNetwork {
		hostNetwork, dns = true, "ClusterFirstWithHostNet"
	}
	command := make([]any, len(argv))
	for i, word := range argv {
		command[i] = word
	}
	return object{
		"restartPolicy", "Never", "subdomain", subdomain, "hostNetwork", hostNetwork, "dnsPolicy", dns,
		"terminationGracePeriodSeconds", int(math.Ceil(m.r.Grace.Seconds())) + podGrace,
		"serviceAccountName", optional(m.k.ServiceAccount), "priorityClassName", optional(m.k.PriorityClass), "runtimeClassName", optional(m.k.RuntimeClass),
		"imagePullSecrets", pulls, "nodeSelector", selector,
		"containers", []any{object{
			"name", "primus", "image", m.k.Image, "command", command, "env", env, "resources", resources, "securityContext", security, "volumeMounts", mounts,
		}},
		"volumes", volumes,
	}
}

// maxMapped is what Kubernetes takes as a ConfigMap.
const maxMapped = 1 << 20

// flags returns the flags with the files that they name in the ConfigMap.
func (m *manifest) flags() []Flag {
	var flags []Flag
	for _, f := range m.r.Flags {
		switch {
		case f.Name == "config":
			f.Value = path.Join(configDir, experimentFile)
		case f.Name == "configs-dir":
			continue // the resolved experiment has the presets in it
		case f.Path == FilePath && strings.Contains(f.Name, "token"):
			m.faults = append(m.faults, fmt.Errorf("--%s: the file holds secrets, which a manifest must not have; leave the flag out, or mount the file with kubernetes.volume and name it in a primus.yaml of the image", f.Name))
			continue
		case f.Path == FilePath:
			file := f.Value
			if !filepath.IsAbs(file) {
				file = filepath.Join(m.r.Dir, file)
			}
			text, err := durable.ReadRegular(file, maxMapped)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				m.faults = append(m.faults, fmt.Errorf("--%s: %w; a manifest cannot have it: mount the file with kubernetes.volume and name it in a primus.yaml of the image", f.Name, err))
				break
			}
			if err != nil {
				m.p.Notes = append(m.p.Notes, fmt.Sprintf("--%s: %s is no file of this machine, so the pods must have it", f.Name, f.Value))
				break
			}
			name := f.Name + "-" + filepath.Base(file)
			m.config[name] = string(text)
			f.Value = path.Join(configDir, name)
		case f.Path == DirPath:
			m.p.Notes = append(m.p.Notes, fmt.Sprintf("--%s: the pods must have the directory %s", f.Name, f.Value))
		}
		flags = append(flags, f)
	}
	return flags
}

// env returns the variables of a pod. Secrets come from the Kubernetes secret of the settings.
func (m *manifest) env() []any {
	list := []any{}
	add := func(name, value string) { list = append(list, object{"name", name, "value", value}) }
	fromSecret := func(name string, optional any) {
		list = append(list, object{"name", name, "valueFrom", object{"secretKeyRef", object{"name", m.k.Secret, "key", name, "optional", optional}}})
	}
	vars, names := assignments(m.k.Env, "launcher file")
	for _, v := range vars {
		if secret.Value(v.Name, v.Value) {
			m.fault("kubernetes.env", "%s is a secret, which a manifest must not have: write its name alone, and name the Kubernetes secret that holds it as kubernetes.secret", v.Name)
			continue
		}
		add(v.Name, v.Value)
	}
	for _, name := range m.r.Names {
		passed := slices.ContainsFunc(passedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if passed && !slices.Contains(notPassed, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.r.Secrets)) {
		if m.k.Secret == "" {
			m.fault("kubernetes.secret", "parameter %s is a secret, which a manifest must not have: name the Kubernetes secret that holds it under the key %s", m.r.Secrets[name], name)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value, set := m.r.Lookup(name)
		_, param := m.r.Secrets[name]
		switch {
		case slices.ContainsFunc(vars, func(v launch.Variable) bool { return v.Name == name }):
		case param:
			fromSecret(name, nil)
		case secret.Name(name) && m.k.Secret != "":
			fromSecret(name, true)
		case secret.Name(name):
			if set {
				m.p.Notes = append(m.p.Notes, fmt.Sprintf("variable %s is a secret and left out; kubernetes.secret names the Kubernetes secret that holds it", name))
			}
		case set && value != "":
			add(name, value)
		}
	}
	add(settingsOff.Name, settingsOff.Value)
	return list
}

// volumes returns the volumes of a pod and where they are mounted.
func (m *manifest) volumes() (volumes, mounts []any) {
	volumes = []any{object{"name", "experiment", "configMap", object{"name", m.name}}}
	mounts = []any{object{"name", "experiment", "mountPath", configDir, "readOnly", true}}
	if m.k.Shm != "" {
		volumes = append(volumes, object{"name", "shm", "emptyDir", object{"medium", "Memory", "sizeLimit", m.k.Shm}})
		mounts = append(mounts, object{"name", "shm", "mountPath", "/dev/shm"})
	}
	kept := false
	for i, v := range m.k.Volume {
		from, rest, ok := strings.Cut(v, ":")
		to, mode, _ := strings.Cut(rest, ":")
		if !ok || !path.IsAbs(to) || mode != "" && mode != "ro" && mode != "rw" || from == "" {
			m.fault("kubernetes.volume", "given %q, want CLAIM:/path or /host:/path, and :ro for one that is only read", v)
			continue
		}
		name := fmt.Sprintf("volume-%d", i)
		var readOnly any
		if mode == "ro" {
			readOnly = true
		}
		if path.IsAbs(from) {
			volumes = append(volumes, object{"name", name, "hostPath", object{"path", from}})
		} else {
			volumes = append(volumes, object{"name", name, "persistentVolumeClaim", object{"claimName", from}})
		}
		mounts = append(mounts, object{"name", name, "mountPath", to, "readOnly", readOnly})
		rel, err := filepath.Rel(to, m.r.Workspace)
		kept = kept || err == nil && filepath.IsLocal(rel) && mode != "ro"
	}
	if !kept {
		m.p.Notes = append(m.p.Notes, fmt.Sprintf("workspace %s is in no volume of the pods, so that results are gone with them; name one as kubernetes.volume", m.r.Workspace))
	}
	return volumes, mounts
}

func (m *manifest) fault(path, format string, args ...any) {
	m.faults = append(m.faults, m.s.fault(path, format, args...))
}

// objectName returns a name that objects of Kubernetes may have.
func objectName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	text := strings.Trim(b.String(), "-")
	if text == "" || text[0] < 'a' {
		text = "primus-" + text
	}
	return strings.Trim(text[:min(len(text), maxName)], "-")
}

func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func number(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}
