//go:build unix

package pyreader_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// head registers a patch with a condition C.
const head = "from primus.core.patches import register_patch, PatchContext\n@register_patch('a', backend='megatron', phase='setup', condition=lambda ctx: C(ctx))\ndef p(ctx):\n    import megatron.core as m\n    m.x = 1\n"

// chained returns functions that call each other several times, the last one with f60.
func chained(first, call string) string {
	all := first
	for i := 1; i <= 60; i++ {
		all += fmt.Sprintf(call, i, i-1, i-1, i-1)
	}
	return all
}

// hostileFiles are modules of patches that cost much to read: by values that hold others many
// times, branches, loops, calls, large numbers and texts, and deep or long expressions.
func hostileFiles() map[string]string {
	nested := ""
	for i := range 40 {
		nested += strings.Repeat(" ", 4+i) + "if ctx.a:\n"
	}
	return map[string]string{
		"unknown ifs":    head + "def C(ctx):\n    x = 0\n" + strings.Repeat("    if ctx.a: x = x + 1\n    else: x = [x, x]\n", 60) + "    return x\n",
		"nested ifs":     head + "def C(ctx):\n    x = 0\n" + nested + strings.Repeat(" ", 44) + "x = 1\n" + "    return x\n",
		"double list":    head + "def C(ctx):\n    x = [1]\n" + strings.Repeat("    x = [x, x]\n", 60) + "    return x == x\n" + "y=[1]\n" + strings.Repeat("y=[y,y]\n", 60) + "z = y == y\nw = str(y)\nv = y < y\nu=repr(y)\n@register_patch(y)\ndef q(ctx): pass\n",
		"double dict":    head + "def C(ctx): return 1\ny={1:2}\n" + strings.Repeat("y={1:y,2:y}\n", 60) + "z = y == y\nw = f'{y}'\n@register_patch(y, backend=y, tags=[y])\ndef q(ctx): pass\n",
		"opaque":         head + "import os\ny=os.x\n" + strings.Repeat("y=y+y\n", 400) + "def C(ctx): return y\n@register_patch(y)\ndef q(ctx): pass\n",
		"opaque calls":   head + "import os\ny=os.x\n" + strings.Repeat("y=y(y,y)\n", 60) + "def C(ctx): return y\n@register_patch(y)\ndef q(ctx): pass\n",
		"union":          head + "import os\ny=1\n" + strings.Repeat("if os.x: y=[y,2]\nelse: y=(y,3)\n", 60) + "def C(ctx): return y == y\n@register_patch(y)\ndef q(ctx): pass\n",
		"power":          head + "y=10**10**10\nz=1<<10**10\nw=9**9**9**9\nv=2**99999999\nu=(10**99999)**9999\ndef C(ctx): return y\n",
		"squares":        head + "y=12345678901234567890\n" + strings.Repeat("y=y*y\n", 40) + "z=str(y)\ndef C(ctx): return y\n",
		"loops":          head + "y=0\nfor a in range(10**9):\n for b in range(10**9):\n  for c in range(10**9):\n   y += 1\nwhile True: y+=1\ndef C(ctx):\n while True: pass\n",
		"comprehension":  head + "y=[a for a in range(10**5) for b in range(10**5) for c in range(10**5)]\ndef C(ctx): return y\n",
		"recursion":      head + "def f(x):\n    return f(x)+f(x)+f(x)+f(x)\ny=f(1)\ndef C(ctx): return f(f)\n",
		"many functions": head + chained("def C(ctx): return f60(ctx)\ndef f0(x): return x.a\n", "def f%d(x): return f%d(x) and f%d(x) or f%d(x)\n"),
		"handlers":       head + chained("def C(ctx): return 1\ndef f0(x):\n    import a\n    a.b = 1\n", "def f%d(x):\n    f%d(x)\n    f%d(x)\n    f%d(x)\n") + "@register_patch('b')\ndef q(ctx): f60(ctx)\n",
		"brackets":       head + "y=" + strings.Repeat("[", 199) + strings.Repeat("]", 199) + "\n",
		"decorators":     head + strings.Repeat("@register_patch('x')\n", 2000) + "def q(ctx): pass\n",
		"chain":          head + "y=a" + strings.Repeat(".b", 4900) + "\n" + strings.Repeat("y=y.c\n", 20000),
		"lambdas":        head + "y=" + strings.Repeat("lambda: ", 400) + "1\n",
		"star":           "from . import *\nfrom .p import *\n" + head,
		"one line":       head + "y=1" + strings.Repeat("+1", 1<<20) + "\ndef C(ctx): return y\n",
		"one text":       head + "y='''" + strings.Repeat("a\\n", 1<<20) + "'''\n" + strings.Repeat("y=y+y\n", 60) + "def C(ctx): return y\n",
		"open text":      head + "y='''" + strings.Repeat("\\N{BULLET}", 1<<17),
		"open brackets":  head + "y=" + strings.Repeat("(", 1<<18) + "\n" + strings.Repeat("y={", 1<<16),
		"tries":          head + "def C(ctx):\n" + strings.Repeat("    try: ctx.a\n    except Exception: ctx.b\n    else: ctx.c\n    finally: ctx.d\n", 2000) + "    return 1\n",
		"slices":         head + "y=list('a'*10**6)\n" + strings.Repeat("y=y[::1]+y[::-1]\n", 60) + "def C(ctx): return y\n",
		"nested formats": head + "y=" + strings.Repeat("f'{1:{", 60) + "1" + strings.Repeat("}}'", 60) + "\ndef C(ctx): return y\n",
		"no text":        "\xff\xfe\x00" + head + "\x00\r\x0c\v\u2028y=1\n",
		"format":         head + "y='%200000000d' % 1\nz='{:>200000000}'.format(1)\nw=f'{1:>200000000}'\nv='a'.ljust(10**10)\nu='a'.zfill(10**10)\nt='a'*10**10\ns=[1]*10**10\nr=list(range(10**10))\n",
	}
}

// hostilePaths put something else than files where patches are.
var hostilePaths = map[string]func(backends string) error{
	"link to /":    func(b string) error { return os.Symlink("/", filepath.Join(b, "evil", "patches")) },
	"link to proc": func(b string) error { return os.Symlink("/proc", filepath.Join(b, "evil", "patches")) },
	"loop":         func(b string) error { return os.Symlink("..", filepath.Join(b, "evil", "patches")) },
	"pipe":         func(b string) error { return syscall.Mkfifo(filepath.Join(b, "evil", "patches"), 0o600) },
	"pipe as file": func(b string) error { return syscall.Mkfifo(filepath.Join(b, "megatron", "patches", "f.py"), 0o600) },
	"zeros": func(b string) error {
		return os.Symlink("/dev/zero", filepath.Join(b, "megatron", "patches", "__init__.py"))
	},
	"no file": func(b string) error {
		return os.Symlink("/nothing", filepath.Join(b, "megatron", "patches", "__init__.py"))
	},
	"many files": func(b string) error {
		const files = 3000
		for i := range files {
			text := fmt.Sprintf("from .f%d import *\nfrom .f%d import *\n", (i+1)%files, (i+7)%files)
			if err := os.WriteFile(filepath.Join(b, "megatron", "patches", fmt.Sprintf("f%d.py", i)), []byte(text), 0o600); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(b, "megatron", "patches", "__init__.py"), []byte("from .f0 import *\n"+head), 0o600)
	},
	"deep folders": func(b string) error {
		deep := filepath.Join(b, "evil", "patches", strings.Repeat("d/", 1000))
		if err := os.MkdirAll(deep, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(deep, "__init__.py"), []byte(head), 0o600)
	},
	"folder": func(b string) error { return os.Mkdir(filepath.Join(b, "megatron", "patches", "__init__.py"), 0o700) },
}

// Reading a checkout ends with its context, whatever the checkout holds.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	try := func(name string, fill func(backends string) error) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			backends := filepath.Join(root, "primus", "backends")
			for _, dir := range []string{"evil", "megatron/patches"} {
				require.NoError(t, os.MkdirAll(filepath.Join(backends, dir), 0o700))
			}
			engine := filepath.Join(root, "primus", "core", "patches")
			require.NoError(t, os.MkdirAll(engine, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(engine, "__init__.py"), []byte("def register_patch(*a, **k): pass\n"), 0o600))
			require.NoError(t, fill(backends))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			c, err := pyreader.Open(ctx, root)
			if strings.HasPrefix(name, "link to ") {
				require.ErrorContains(t, err, "path escapes from parent")
				return
			}
			if err == nil {
				c.Plan(pyreader.Run{Backend: "megatron"})
			} else if ctx.Err() != nil {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
	files := hostileFiles()
	primustest.Documented(t, "repositories", len(files)+len(hostilePaths))
	for name, text := range files {
		try(name, func(backends string) error {
			return os.WriteFile(filepath.Join(backends, "megatron", "patches", "__init__.py"), []byte(text), 0o600)
		})
	}
	for name, fill := range hostilePaths {
		try(name, fill)
	}
}
