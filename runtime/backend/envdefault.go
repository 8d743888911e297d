package backend

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Arch is a GPU architecture that a default of the environment is meant for.
type Arch string

// The architectures that have defaults of their own.
const (
	AnyArch Arch = ""
	GFX942  Arch = "gfx942" // MI300X, MI325X
	GFX950  Arch = "gfx950" // MI350X, MI355X
	NoArch  Arch = "unknown"
)

// EnvDefault is a default value of an environment variable.
type EnvDefault struct {
	Name, Value string
	Arch        Arch   // AnyArch, or the architecture that the default is for
	MergeFlags  bool   // merge the flags in Value into a variable that is set, instead of keeping its value
	Note        string // why
}

// ApplyEnvDefaults sets the defaults of a framework. A variable that is set keeps its value, except
// that flags are merged. detect returns the architecture. It is called at most once, and only if a
// default depends on it.
func ApplyEnvDefaults(env *Environ, framework string, defaults []EnvDefault, detect func() Arch, log *slog.Logger) error {
	arch := AnyArch
	if slices.ContainsFunc(defaults, func(d EnvDefault) bool { return d.Arch != AnyArch }) {
		arch = detect()
	}
	for _, d := range defaults {
		if d.Arch != AnyArch && d.Arch != arch {
			continue
		}
		before, set := env.Lookup(d.Name)
		source := "default of framework " + framework
		if d.MergeFlags {
			merged := MergeFlags(before, d.Value)
			if err := env.Set(d.Name, merged, source); err != nil {
				return err
			}
			if merged != before {
				log.Info(fmt.Sprintf("[Primus:%s] %s merged (managed XLA knobs win)", framework, d.Name))
			}
			continue
		}
		if set {
			continue
		}
		if err := env.Set(d.Name, d.Value, source); err != nil {
			return err
		}
		note := ""
		if d.Note != "" {
			note = " (" + d.Note + ")"
		}
		log.Info(fmt.Sprintf("[Primus:%s] %s=%s (default)%s", framework, d.Name, d.Value, note))
	}
	return nil
}

// MergeFlags merges two lists of flags that are separated by spaces. The name of a flag is the text
// before =. Flags of managed replace existing flags of the same name, and new flags follow. If a
// flag occurs twice in one list, the last one counts.
func MergeFlags(existing, managed string) string {
	var names, flags []string
	for _, flag := range append(strings.Fields(existing), strings.Fields(managed)...) {
		name, _, _ := strings.Cut(flag, "=")
		if i := slices.Index(names, name); i >= 0 {
			flags[i] = flag
			continue
		}
		names, flags = append(names, name), append(flags, flag)
	}
	return strings.Join(flags, " ")
}

// DetectArch asks rocminfo for the architecture of the GPUs. It returns NoArch if rocminfo gives no
// answer.
func DetectArch() Arch {
	const timeout = 15 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	program, err := exec.LookPath("rocminfo")
	if err != nil {
		program = "/opt/rocm/bin/rocminfo"
	}
	out, err := exec.CommandContext(ctx, program).Output()
	if err != nil {
		return NoArch
	}
	found := NoArch
	for _, arch := range []Arch{GFX942, GFX950} { // the newer one wins
		if strings.Contains(string(out), string(arch)) {
			found = arch
		}
	}
	return found
}
