package loader_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

func TestOpenFailures(t *testing.T) {
	text := writeFile(t, "libtext.so", "this is not a library, but it is long enough to hold a header of one: "+fmt.Sprint(make([]int, 64)))
	short := writeFile(t, "libshort.so", "x")
	undefined := compile(t, "undefined.c")
	tests := []struct {
		name string
		give []string
		want []string // parts of the message, in order
	}{
		{"no names", nil, []string{"given no names"}},
		{"empty name", []string{""}, []string{"given the empty name"}},
		{"missing", []string{"libprimus_absent.so.7"}, []string{"libprimus_absent.so.7: cannot open shared object file"}},
		{"missing, every name", []string{"liba_absent.so", "/nonexistent/libb.so"}, []string{
			"liba_absent.so: cannot open shared object file; ", "/nonexistent/libb.so: cannot open shared object file"}},
		{"text file", []string{text}, []string{text, "invalid ELF header"}},
		{"file too short", []string{short}, []string{short, "file too short"}},
		{"undefined symbol is found at once", []string{undefined}, []string{undefined, "nobody_defines_this"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && len(tt.want) > 1 {
				t.Skip("the texts are those of glibc")
			}
			lib, err := loader.Open(tt.give...)
			require.Nil(t, lib)
			var failure *loader.OpenError
			require.ErrorAs(t, err, &failure)
			assert.Len(t, failure.Attempts, len(tt.give))
			rest := err.Error()
			for _, part := range tt.want {
				require.Contains(t, rest, part)
			}
			assert.NotContains(t, rest, "No such file or directory")
		})
	}
}

func TestOpenNamesMissingDependency(t *testing.T) {
	shared := compile(t, "shared.c", "-Wl,-soname,libprimus_gone.so")
	user := compile(t, "user.c", shared)
	_, err := loader.Open(user)
	require.ErrorContains(t, err, user+": libprimus_gone.so: cannot open shared object file")
}

func TestOpenTakesFirstThatOpens(t *testing.T) {
	path := compile(t, "fixture.c")
	lib, err := loader.Open("libprimus_absent.so", path, "libprimus_absent2.so")
	require.NoError(t, err)
	assert.Equal(t, path, lib.Name())
	assert.Equal(t, path, lib.Path())
}

func TestPathOfSoname(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	lib, err := loader.Open("libc.so.6")
	if err != nil {
		t.Skip(err)
	}
	assert.Equal(t, "libc.so.6", lib.Name())
	assert.True(t, filepath.IsAbs(lib.Path()), lib.Path())
	assert.Equal(t, "libc.so.6", filepath.Base(lib.Path()))
}

func TestSymbolsAreNotSeenByOtherLibraries(t *testing.T) {
	_, err := loader.Open(compile(t, "shared.c"))
	require.NoError(t, err)
	_, err = loader.Open(compile(t, "user.c"))
	require.ErrorContains(t, err, "fixture_shared")
}

func TestMissingSymbol(t *testing.T) {
	lib := openFixture(t)
	_, err := lib.Symbol("fixture_absent")
	require.ErrorIs(t, err, loader.ErrNoSymbol)
	assert.ErrorContains(t, err, `"fixture_absent"`)
	assert.ErrorContains(t, err, lib.Name())

	var optional func() int32
	require.ErrorIs(t, lib.Bind(&optional, "fixture_absent"), loader.ErrNoSymbol)
	assert.Nil(t, optional)
}

func TestGlobal(t *testing.T) {
	openFixture(t)
	strlen, err := loader.Global("strlen")
	require.NoError(t, err)
	text := []byte("primus\x00")
	assert.EqualValues(t, 6, loader.Call(strlen, uintptr(unsafe.Pointer(&text[0]))))

	_, err = loader.Global("fixture_double")
	require.ErrorIs(t, err, loader.ErrNoSymbol, "symbols of a local library are not seen")
	assert.ErrorContains(t, err, `"fixture_double"`)
}

func TestCall(t *testing.T) {
	lib := openFixture(t)
	sum, err := lib.Symbol("fixture_sum13")
	require.NoError(t, err)
	args := make([]uintptr, 13)
	want := 0
	for i := range args {
		args[i] = uintptr(100 + i)
		want += (i + 1) * (100 + i)
	}
	assert.EqualValues(t, want, loader.Call(sum, args...))

	double, err := lib.Symbol("fixture_double")
	require.NoError(t, err)
	x, n := []float32{1, 2, 3}, int32(2)
	loader.Call(double, uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&n)))
	assert.Equal(t, []float32{2, 4, 3}, x)
}

func TestCallOfKeptArgumentsDoesNotAllocate(t *testing.T) {
	lib := openFixture(t)
	sum, err := lib.Symbol("fixture_sum13")
	require.NoError(t, err)
	args := make([]uintptr, 13)
	assert.Zero(t, testing.AllocsPerRun(100, func() { loader.Call(sum, args...) }))
}

func TestBindFloats(t *testing.T) {
	lib := openFixture(t)
	var axpy func(a, x, y float32) float32
	require.NoError(t, lib.Bind(&axpy, "fixture_axpy"))
	assert.Equal(t, float32(-1.5), axpy(0.25, -10, 1))

	var mixed func(c byte, n int64, alpha float32, x *float32, beta float32, gamma float64) float64
	require.NoError(t, lib.Bind(&mixed, "fixture_mixed"))
	x := []float32{9, 4}
	assert.Equal(t, 7+10*-3+100*0.5+1000*4+10000*-0.25+100000*0.125, mixed(7, -3, 0.5, &x[0], -0.25, 0.125))
}

func TestErrorsOfConcurrentOpensAreTheirOwn(t *testing.T) {
	if _, err := loader.Open(); err == loader.ErrPlatform {
		t.Skip(err)
	}
	const goroutines, opens = 16, 300
	start := make(chan struct{})
	var wg sync.WaitGroup
	wrong := make(chan string, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			<-start
			for i := range opens {
				name := fmt.Sprintf("libprimus_absent_%d_%d.so", g, i)
				_, err := loader.Open(name)
				if want := "loader: open: " + name + ": cannot open shared object file"; err == nil || err.Error() != want {
					wrong <- fmt.Sprintf("given %v, want %s", err, want)
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
	close(wrong)
	for w := range wrong {
		t.Error(w)
	}
}
