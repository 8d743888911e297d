package settings_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/settings"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// flags are of each sort that commands have.
func flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("train", pflag.ContinueOnError)
	f.Uint("threads", 0, "`N` threads")
	f.String("policy", "", "a policy `FILE`")
	f.String("metrics-addr", "", "`HOST:PORT`")
	f.StringArray("configs-dir", nil, "presets in `DIR`")
	f.StringSlice("dtype", []string{"f32", "f64"}, "`DTYPES`")
	f.Bool("strict-config", false, "strict")
	f.Duration("patience", 0, "a `TIME`")
	f.String("secret", "", "not a setting")
	return f
}

func takes(f *pflag.Flag) bool { return f.Name != "secret" }

func wants(f *pflag.Flag) string { return "another " + f.Name }

// place makes a project with a folder below it and a home of a user, and returns the folder.
func place(t *testing.T, project, user string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "home"))
	t.Setenv(settings.EnvFile, "")
	below := filepath.Join(dir, "project", "below")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "home", "primus"), 0o755))
	for file, text := range map[string]string{filepath.Join(dir, "project", "primus.yaml"): project, filepath.Join(dir, "home", "primus", "primus.yaml"): user} {
		if text != "" {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	return below
}

// resolve returns the settings of a command line by name.
func resolve(t *testing.T, dir string, f *pflag.FlagSet) map[string]settings.Setting {
	t.Helper()
	s, err := settings.Load(t.Context(), dir)
	require.NoError(t, err)
	all, err := s.Resolve(f, takes)
	require.NoError(t, err)
	byName := map[string]settings.Setting{}
	for _, one := range all {
		byName[one.Name] = one
	}
	return byName
}

func TestOrder(t *testing.T) {
	dir := place(t, "threads: 3\nmetrics_addr: h:1\nstrict-config: yes\n", "threads: 2\npatience: 10s\nmetrics-addr: h:2\n")
	t.Setenv("PRIMUS_METRICS_ADDR", "h:3")
	f := flags()
	require.NoError(t, f.Parse([]string{"--threads", "4"}))
	all := resolve(t, dir, f)
	type source struct {
		scope settings.Scope
		text  string
	}
	for name, want := range map[string][]source{
		"threads":       {{settings.Flag, "4"}, {settings.Project, "3"}, {settings.User, "2"}, {settings.Default, "0"}},
		"metrics-addr":  {{settings.Environment, "h:3"}, {settings.Project, "h:1"}, {settings.User, "h:2"}, {settings.Default, ""}},
		"patience":      {{settings.User, "10s"}, {settings.Default, "0s"}},
		"strict-config": {{settings.Project, "yes"}, {settings.Default, "false"}},
		"policy":        {{settings.Default, ""}},
	} {
		var got []source
		for _, v := range all[name].Values {
			require.Len(t, v.Texts, 1, name)
			got = append(got, source{v.Scope, v.Texts[0]})
		}
		assert.Equal(t, want, got, name)
	}
	assert.NotContains(t, all, "secret")
	assert.Equal(t, "PRIMUS_METRICS_ADDR", all["metrics-addr"].Values[0].Where)
	assert.Equal(t, filepath.Join(filepath.Dir(dir), "primus.yaml")+":1:10", all["threads"].Values[1].Where)
	assert.Equal(t, "--threads", all["threads"].Values[0].Where)

	for _, name := range []string{"threads", "metrics-addr", "patience", "policy"} {
		require.NoError(t, all[name].Apply(f, wants))
		if text := all[name].Values[0].Texts[0]; text != "" {
			assert.Equal(t, text, f.Lookup(name).Value.String())
		}
	}
}

func TestLists(t *testing.T) {
	dir := place(t, "configs-dir: [presets, /opt/presets]\ndtype: bf16\n", "")
	f := flags()
	all := resolve(t, dir, f)
	assert.Equal(t, []string{"f32", "f64"}, all["dtype"].Values[1].Texts)
	require.NoError(t, all["configs-dir"].Apply(f, wants))
	dirs, err := f.GetStringArray("configs-dir")
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(filepath.Dir(dir), "presets"), "/opt/presets"}, dirs)

	t.Setenv("PRIMUS_CONFIGS_DIR", "a"+string(os.PathListSeparator)+"b")
	f = flags()
	require.NoError(t, resolve(t, dir, f)["configs-dir"].Apply(f, wants))
	dirs, err = f.GetStringArray("configs-dir")
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, dirs, "paths of the environment are relative to the working directory")
}

func TestPathsAreRelativeToTheirFile(t *testing.T) {
	dir := place(t, "policy: below/p.yaml\n", "")
	assert.Equal(t, "p.yaml", resolve(t, dir, flags())["policy"].Values[0].Texts[0])
}

func TestNamedFile(t *testing.T) {
	dir := place(t, "threads: 3\n", "threads: 2\n")
	other := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(other, []byte("# nothing yet\n"), 0o644))
	t.Setenv(settings.EnvFile, other)
	assert.Len(t, resolve(t, dir, flags())["threads"].Values, 1)
	t.Setenv(settings.EnvFile, "none")
	assert.Len(t, resolve(t, dir, flags())["threads"].Values, 1)
	t.Setenv(settings.EnvFile, filepath.Join(dir, "absent.yaml"))
	_, err := settings.Load(t.Context(), dir)
	require.ErrorContains(t, err, "absent.yaml\" does not exist, want a file or none")
}

func TestFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not YAML", "threads: [", "primus.yaml:1: invalid YAML"},
		{"no mapping", "- threads", "primus.yaml:1:1: given a list of 1, want a mapping from flags to values"},
		{"twice", "threads: 1\nthreads: 2\n", "primus.yaml:2:10: threads: is given twice, first at "},
		{"two spellings", "metrics-addr: a\nmetrics_addr: b\n", "primus.yaml:2:15: metrics_addr: is given twice, first at "},
		{"null", "threads:\n", "threads: given null, want a value"},
		{"nested", "threads: {n: 1}\n", "threads: given a mapping of 1, want a value or a list of values"},
		{"nested list", "configs-dir: [[a]]\n", "configs-dir: given a list of 1, want"},
		{"a list for one value", "threads: [1, 2]\n", "threads: given a list, want one value"},
		{"unknown", "treads: 1\n", `primus.yaml:1:9: treads: unknown key, want the name of a flag; primus config cli lists them; did you mean "threads"?`},
		{"per call", "secret: 1\n", "secret: --secret has to be given with a command"},
		{"wrong value", "threads: many\n", `primus.yaml:1:10: threads: given "many", want another threads`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := place(t, tt.text, "")
			require.ErrorContains(t, use(dir), tt.want)
		})
	}
	dir := place(t, "", "")
	t.Setenv("PRIMUS_THREADS", "many")
	require.EqualError(t, use(dir), `PRIMUS_THREADS: given "many", want another threads`)
}

// use goes all the way from the files to the flags.
func use(dir string) error {
	s, err := settings.Load(context.Background(), dir)
	if err != nil {
		return err
	}
	var names []string
	f := flags()
	f.VisitAll(func(f *pflag.Flag) {
		if takes(f) {
			names = append(names, f.Name)
		}
	})
	if err := s.Check(names, []string{"secret"}); err != nil {
		return err
	}
	all, err := s.Resolve(f, takes)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := one.Apply(f, wants); err != nil {
			return err
		}
	}
	return nil
}

func TestFileOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := place(t, "threads: 3\n", "")
	file := filepath.Join(filepath.Dir(dir), "primus.yaml")
	require.NoError(t, os.Chown(file, 12345, -1))
	_, err := settings.Load(t.Context(), dir)
	require.ErrorContains(t, err, "belongs to another user")
	t.Setenv(settings.EnvFile, file)
	assert.Equal(t, "3", resolve(t, dir, flags())["threads"].Values[0].Texts[0])
}

// Whatever is in a file is an error or sets flags; nothing panics.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"threads: 2\n", "configs-dir: [a, b]\n", "policy: ''\n", "a: &a [*a]\n", "<<: {threads: 1}\n", "threads: 0x10\n", "? [a]\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		file := filepath.Join(t.TempDir(), "primus.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		t.Setenv(settings.EnvFile, file)
		if err := use(filepath.Dir(file)); err != nil {
			require.NotContains(t, err.Error(), "panic")
		}
	})
}
