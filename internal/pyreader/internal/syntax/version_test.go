package syntax_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	for source, want := range map[string]string{
		"# MAJOR = 9\nMAJOR = 0\nMINOR=16  # sixteen\nPATCH: int = 1_0\nPRE_RELEASE = 'rc0'\n": "0.16.10rc0",
		"MAJOR = 0\nMINOR = 16\nPATCH = 0\n__version__ = '.'.join(map(str, (MAJOR, MINOR)))\n": "0.16.0",
		"MAJOR = MINOR = 1\nPATCH = 2\nPATCH = 3\n":                                            "1.1.3",
		"__version__ = (\n    \"1.0#2\"  # x\n)\n":                                             "1.0#2",
		"__version__ = '1.0'\n__version__ = find()\n":                                          "",
		"__version__ = '1.0'\n__version__: str\n":                                              "1.0",
		"def f():\n    __version__ = '1'\n":                                                    "",
		"MAJOR = 1\nMINOR = 2\n":                                                               "",
		"__version__: str\nMAJOR, MINOR, PATCH = 1, 2, 3\n":                                    "",
		"__version__ = b'1'\n":                                                                 "",
		"":                                                                                     "",
	} {
		file, err := syntax.Parse("p/__init__.py", []byte(source), nil)
		require.NoError(t, err, source)
		assert.Equal(t, want, file.Version(), source)
	}
}
