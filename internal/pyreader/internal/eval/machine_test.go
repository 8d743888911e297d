package eval_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// files returns a source tree.
func files(texts map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range texts {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

// variable imports the module m of a tree and returns a variable of it as text.
func variable(t *testing.T, m *eval.Machine, name string) string {
	t.Helper()
	mod, ok := m.Import("m").(*eval.Module)
	require.True(t, ok)
	v, ok := mod.Var(name)
	require.True(t, ok, name)
	return eval.Repr(v)
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`1 + 2 * 3`:                                  "7",
		`-7 // 2, -7 % 2, 7 // -2, 7 % -2`:           "[-4, 1, -4, -1]",
		`"a" + "b" if 1 < 2 <= 2 else None`:          "'ab'",
		`", ".join(map(str, [1, "x"]))`:              "'1, x'",
		`f"{'a'}-{1!r}"`:                             "'a-1'",
		`[x * 2 for x in (1, 2, 3) if x != 2]`:       "[2, 6]",
		`{"a": 1, **{"b": 2}}["b"]`:                  "2",
		`{"a": 1}.get("b", "none")`:                  "'none'",
		`"a" in {"a": 1} and "b" not in "cd"`:        "True",
		`any([0, "x"]), all([0, "x"])`:               "[True, False]",
		`getattr(torch, "x", 1)`:                     "torch.x",
		`unknown() and False`:                        "unknown() or False",
		`(lambda a, *b, c=3: [a, b, c])(1, 2)`:       "[1, [2], 3]",
		`isinstance(True, int), isinstance("", int)`: "[True, False]",
		`"{}-{name}".format(1, name="n")`:            "'1-n'",
		`" a b ".strip().split()`:                    "['a', 'b']",
		`sorted({"b", "a"})`:                         "['a', 'b']",
		`len("äb"), bool(""), int("7")`:              "[2, False, 7]",
		`1 if torch.cuda.is_available() else 2`:      "1 or 2",
		`None is None, torch is None`:                "[True, torch is None]",
	} {
		m := eval.New(files(map[string]string{"m.py": "import torch\nv = " + text + "\n"}))
		assert.Equal(t, want, variable(t, m, "v"), text)
		assert.Empty(t, m.Faults, text)
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]eval.Truth{
		`torch.x and False`:          eval.False,
		`torch.x or True`:            eval.True,
		`torch.x and True`:           eval.Unknown,
		`not (torch.x or 1)`:         eval.False,
		`torch.x == torch.x`:         eval.Unknown,
		`[] or {}`:                   eval.False,
		`0.0 or ""`:                  eval.False,
		`helper(None)`:               eval.False,
		`helper(torch.x)`:            eval.Unknown,
		`helper("yes")`:              eval.True,
		`tried()`:                    eval.Unknown,
		`safe()`:                     eval.True,
		`found("b")`:                 eval.True,
		`found("c")`:                 eval.False,
		`os.environ.get("X") == "1"`: eval.True,
		`"Y" in os.environ`:          eval.False,
	} {
		m := eval.New(files(map[string]string{"m.py": `
import os, torch
def helper(x):
    if x is None:
        return False
    if x == "yes":
        return True
    return bool(torch.y)
def tried():
    try:
        import triton
        return True
    except ImportError:
        return False
def safe():
    try:
        return True
    except ValueError:
        return False
def found(name):
    for item in ("a", "b"):
        if item == name:
            return True
    return False
f = lambda: ` + text + "\n"}))
		m.Env = map[string]string{"X": "1"}
		mod := m.Import("m").(*eval.Module)
		f, _ := mod.Var("f")
		assert.Equal(t, want, m.Truth(m.Run(f)), text)
	}
}

// TestImports follows Python's order: the package first, cycles see what is there so far, and
// packages are walked as pkgutil does.
func TestImports(t *testing.T) {
	t.Parallel()
	m := eval.New(files(map[string]string{
		"m.py":              "import p.sub.deep\nfrom p import *\nfrom p.sub import again as other\nv = [a, other, p.sub.deep.name]\n",
		"p/__init__.py":     "__all__ = ['a']\na = 1\nhidden = 2\n",
		"p/sub/__init__.py": "from . import cycle\nfrom .names import again\n",
		"p/sub/names.py":    "again = 'renamed'\n",
		"p/sub/cycle.py":    "import p.sub\nfrom ..sub import deep\n",
		"p/sub/deep.py":     "name = __name__\n",
		"walk/__init__.py":  "import importlib, pkgutil\nfor found in pkgutil.walk_packages(__path__, prefix=__name__ + '.'):\n    if found.name.endswith('_x'):\n        importlib.import_module(found.name)\n",
		"walk/b_x.py":       "", "walk/a_x.py": "", "walk/no.py": "",
		"walk/aa/__init__.py": "", "walk/aa/z_x.py": "", "walk/plain/z_x.py": "",
	}))
	assert.Equal(t, "[1, 'renamed', 'p.sub.deep']", variable(t, m, "v"))
	m.Import("walk")
	var order []string
	for _, mod := range m.Modules() {
		order = append(order, mod.Name)
	}
	assert.Equal(t, "m p p.sub p.sub.cycle p.sub.deep p.sub.names walk walk.a_x walk.aa walk.aa.z_x walk.b_x", strings.Join(order, " "))
}

func TestStores(t *testing.T) {
	t.Parallel()
	m := eval.New(files(map[string]string{"m.py": `
import importlib, os
def f(ctx):
    import lib.a as a
    for name in ("x", "y"):
        setattr(importlib.import_module("lib." + name), "g", 1)
    if ctx.unknown:
        a.h = lambda: a.h
    try:
        from lib import fast as which
    except ImportError:
        a.failed = True
        from lib import slow as which
    which.k = 2
    def later():
        a.later = 1
    os.environ["E"] = "1"
    del a.gone
`}))
	var stores []string
	m.OnStore = func(s *eval.Store) {
		text := eval.Repr(s.Base) + "." + s.Attr
		if s.Alternative {
			text += " alternative"
		}
		stores = append(stores, text)
	}
	f, _ := m.Import("m").(*eval.Module).Var("f")
	m.Run(f, &eval.Object{Open: true})
	assert.Equal(t, "lib.x.g, lib.y.g, lib.a.h, lib.a.failed alternative, lib.fast.k, os.environ., lib.a.gone", strings.Join(stores, ", "))
}

// A class of the tree that a handler replaces by one of a library may be either, a function may
// not.
func TestUpstreamInHandlers(t *testing.T) {
	t.Parallel()
	m := eval.New(files(map[string]string{
		"own.py": "class C:\n    pass\ndef g():\n    pass\n",
		"m.py": `
def f(ctx):
    try:
        from own import C as which, g as call
    except ImportError:
        import lib.deep as mod
        which = mod.C
        from lib import g as call
    which.__init__ = None
    call.mark = True
`}))
	var stores []string
	m.OnStore = func(s *eval.Store) { stores = append(stores, eval.Repr(s.Base)+"."+s.Attr) }
	f, _ := m.Import("m").(*eval.Module).Var("f")
	m.Run(f, &eval.Object{Open: true})
	assert.Equal(t, []string{"own.C.__init__", "lib.deep.C.__init__", "own.g.mark"}, stores)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	m := eval.New(files(map[string]string{
		"m.py":   "def f(n):\n    return f(n + 1)\nv = f(0)\nwhile True:\n    pass\n",
		"bad.py": "def (\n",
	}))
	assert.Equal(t, "f(n + 1)", variable(t, m, "v"))
	m.Import("bad")
	require.Len(t, m.Faults, 1)
	assert.Contains(t, m.Faults[0].Error(), "bad.py:2:1")
	assert.Equal(t, eval.External{Path: "no.such"}, m.Import("no.such"))
	assert.Equal(t, eval.External{Path: "../m"}, m.Import("../m"))
}

// FuzzMachine evaluates anything that is Python: it comes to an end, and does not panic.
func FuzzMachine(f *testing.F) {
	for _, text := range []string{
		"x = [i for i in range(3)]\nwhile x: pass\n", "def f(*a, **k): return f(*a, **k)\nf(1, b=2)\n", "class A(B):\n  x: int = 1\nA.x = A(1).y\n",
		"import m\nfrom m import *\nm.m = m\n", "a, *b = c = {}\na[b] += '%s' % c\ndel a[0], b.c\n", "try:\n  raise x\nexcept y as z:\n  z.a = 1\nfinally:\n  import q\n",
		"x = f'{a!r:>{b}}' 'c'\n''.join(x)\nx.replace('a', 'b', 1)\n", "with a as b, c: match b:\n case 1: pass\n",
		"import inspect, sys\ns = inspect.getsource(a.b).replace('x', 'y')\nexec(s, {}, n)\nsys.modules['x'].y = 1\n", "(-1) // 0; 1 / 0; 1 % 0; [1][9]; 'a'[0]; {}['b']\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		m := eval.New(files(map[string]string{"m.py": text}))
		m.OnStore = func(s *eval.Store) { eval.Repr(s.Value) }
		mod := m.Import("m").(*eval.Module)
		if v, ok := mod.Var("f"); ok {
			m.Inside(m.Run(v, eval.Argument{}), func(eval.Value) {})
		}
	})
}
