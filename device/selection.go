package device

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// The environment variables that name the backend to use.
const (
	// EnvBackend is the variable that StepMesh documents.
	EnvBackend = "STEPMESH_BACKEND"

	// EnvBackendMisspelt is the variable that StepMesh reads.
	EnvBackendMisspelt = "STEPMESH_BAKCEND"
)

// SourceDefault is the Source of a Selection that no environment variable made.
const SourceDefault = "default"

// The backends of the default choice, in order of preference.
const (
	preferredDefault = "GPU"
	fallbackDefault  = "CPU"
)

// Selection is the outcome of Select.
type Selection struct {
	// Backend is the chosen backend, which is usable.
	Backend Backend

	// Name is the name under which Backend is registered.
	Name string

	// Source is the environment variable that decided, or SourceDefault.
	Source string

	// Note is one line to log when the default is the CPU because the GPU cannot be used, with the
	// reason; it is empty otherwise.
	Note string
}

// Select picks the backend that the environment names in EnvBackend or EnvBackendMisspelt, else GPU
// if that is registered and usable, else CPU. getenv is os.LookupEnv outside tests. A value of only
// space counts as unset; letter case and surrounding space do not matter. A value such as OPENCL:1
// also makes the device with that index current for all threads that have not called SetDevice.
//
// It returns an error that matches ErrConflict when the two variables name different backends,
// ErrNotFound when the chosen backend is not registered, ErrNoDevice when it has no device with the
// index, and ErrUnusable when it cannot be used here. Errors list the registered backends, each
// with whether it can be used and why not. A named backend is never replaced by another.
func Select(reg *Registry, getenv func(string) (string, bool)) (Selection, error) {
	name, source, err := choice(getenv)
	if err != nil {
		return Selection{}, err
	}
	if source == SourceDefault {
		return selectDefault(reg)
	}

	return Choose(reg, source, name)
}

// Choose picks the backend that a value names, such as OPENCL or opencl:1, as Select does. Source
// says in errors where the value comes from, such as the name of a parameter.
func Choose(reg *Registry, source, value string) (Selection, error) {
	name, index, numbered := strings.Cut(value, ":")
	normalised, _ := normaliseName(name)
	b, err := reg.Get(name)
	if err != nil {
		return Selection{}, fmt.Errorf("%w: %s=%q; registered: %s%s",
			ErrNotFound, source, value, describe(reg, normalised), suggest.Hint(strings.TrimSpace(name), reg.Names()))
	}
	if reason := unusable(b); reason != "" {
		return Selection{}, fmt.Errorf("%w: %s=%q: %s; also registered: %s",
			ErrUnusable, source, value, reason, describe(reg, normalised))
	}
	if numbered {
		if err := number(b, index); err != nil {
			return Selection{}, fmt.Errorf("%w: %s=%q: %w", ErrNoDevice, source, value, err)
		}
	}
	return Selection{Backend: b, Name: normalised, Source: source}, nil
}

// number makes the device with an index the current one of b.
func number(b Backend, index string) error {
	n, err := strconv.Atoi(strings.TrimSpace(index))
	if err != nil {
		return fmt.Errorf("the index of the device is %q, want a number such as 0", index)
	}
	if numbered, ok := As[Numbered](b); ok {
		return numbered.SetDefaultDevice(n)
	}
	if n != 0 {
		return fmt.Errorf("there is no device %d: %s has only device 0", n, b.Name())
	}
	return nil
}

// choice returns the value and the name of the variable that is set; the name is SourceDefault when
// neither is.
func choice(getenv func(string) (string, bool)) (name, source string, err error) {
	value, _ := getenv(EnvBackend)
	misspelt, _ := getenv(EnvBackendMisspelt)
	value, misspelt = strings.TrimSpace(value), strings.TrimSpace(misspelt)
	switch {
	case value == "" && misspelt == "":
		return "", SourceDefault, nil
	case misspelt == "" || strings.EqualFold(value, misspelt):
		return value, EnvBackend, nil
	case value == "":
		return misspelt, EnvBackendMisspelt, nil
	default:
		return "", "", fmt.Errorf("%w: %s=%q but %s=%q; unset one of them",
			ErrConflict, EnvBackend, value, EnvBackendMisspelt, misspelt)
	}
}

func selectDefault(reg *Registry) (Selection, error) {
	why := "not registered"
	if b, err := reg.Get(preferredDefault); err == nil {
		if why = unusable(b); why == "" {
			return Selection{Backend: b, Name: preferredDefault, Source: SourceDefault}, nil
		}
		why = "not usable: " + why
	}

	b, err := reg.Get(fallbackDefault)
	if err != nil {
		return Selection{}, fmt.Errorf("%w: the default is %s, else %s; registered: %s; register one of the two or name another in %s",
			ErrNotFound, preferredDefault, fallbackDefault, describe(reg, ""), EnvBackend)
	}
	if reason := unusable(b); reason != "" {
		return Selection{}, fmt.Errorf("%w: %s, the last default: %s; also registered: %s; name a usable one in %s",
			ErrUnusable, fallbackDefault, reason, describe(reg, fallbackDefault), EnvBackend)
	}
	note := fmt.Sprintf("device: using backend %s because %s is %s; set %s=%s to choose it explicitly",
		fallbackDefault, preferredDefault, why, EnvBackend, fallbackDefault)
	return Selection{Backend: b, Name: fallbackDefault, Source: SourceDefault, Note: note}, nil
}

// describe lists the registered backends except one, each with whether it can be used.
func describe(reg *Registry, except string) string {
	var items []string
	for _, e := range reg.entries() {
		if e.name == except {
			continue
		}
		state := "usable"
		if reason := unusable(e.backend); reason != "" {
			state = "unusable: " + reason
		}
		items = append(items, fmt.Sprintf("%s (%s)", e.name, state))
	}
	return listOrNone(items)
}

// unusable returns why b cannot be used, in one line, or nothing when it can. A probe that panics
// must not keep the program from using another backend.
func unusable(b Backend) (reason string) {
	defer func() {
		if v := recover(); v != nil {
			reason = oneLine(fmt.Sprintf("its Usable method panicked: %v", v))
		}
	}()
	err := b.Usable()
	if err == nil {
		return ""
	}
	if reason = oneLine(err.Error()); reason == "" {
		return "it gives no reason"
	}
	return reason
}

// oneLine joins the lines of an error text, such as that of errors.Join, into one.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
