package metrics_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const monitoring = "../examples/monitoring"

// readYAML decodes a file of examples/monitoring. A key that the type does not have is an error.
func readYAML[T any](t *testing.T, name string) (v T) {
	t.Helper()
	f, err := os.Open(filepath.Join(monitoring, name))
	require.NoError(t, err)
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&v), name)
	return v
}

// container is a service of the compose file.
type container struct {
	Image       string
	NetworkMode string `yaml:"network_mode"`
	Command     []string
	Environment map[string]string
	Volumes     []string
	DependsOn   []string `yaml:"depends_on"`
	Restart     string
}

// host returns where a file of the container is here, "" for one in a named volume or in the image.
func (c container) host(t *testing.T, file string) string {
	t.Helper()
	best, at := "", ""
	for _, volume := range c.Volumes {
		parts := strings.Split(volume, ":")
		require.GreaterOrEqual(t, len(parts), 2, volume)
		if rest, ok := strings.CutPrefix(file+"/", parts[1]+"/"); ok && len(parts[1]) > len(best) {
			best, at = parts[1], ""
			if strings.HasPrefix(parts[0], ".") {
				at = filepath.Join(monitoring, parts[0], rest)
			}
		}
	}
	return at
}

// TestCompose checks that whatever the containers are told to use is there: files, folders, volumes
// and addresses.
func TestCompose(t *testing.T) {
	compose := readYAML[struct {
		Services map[string]container
		Volumes  map[string]any
	}](t, "compose.yaml")
	for name, c := range compose.Services {
		assert.Regexp(t, `^docker\.io/[a-z/]+:v?\d+\.\d+\.\d+$`, c.Image, "an image of a certain version")
		assert.Equal(t, "host", c.NetworkMode, "%s reaches runs on the loopback address", name)
		for _, other := range c.DependsOn {
			assert.Contains(t, compose.Services, other)
		}
		for _, volume := range c.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, ".") {
				assert.DirExists(t, filepath.Join(monitoring, source), volume)
			} else {
				assert.Contains(t, compose.Volumes, source)
			}
		}
		for _, word := range slices.AppendSeq(slices.Clone(c.Command), maps.Values(c.Environment)) {
			_, file, ok := strings.Cut(word, "=")
			if !ok {
				file = word
			}
			if at := c.host(t, file); strings.HasPrefix(file, "/") && at != "" {
				assert.FileExists(t, at, "%s of %s", file, name)
			}
		}
	}
	prometheus, grafana := compose.Services["prometheus"], compose.Services["grafana"]
	require.NotEmpty(t, prometheus.Command)
	assert.Contains(t, prometheus.Command, "--config.file=/primus/examples/monitoring/prometheus.yml")
	assert.Equal(t, filepath.Join(monitoring, "prometheus.yml"), prometheus.host(t, "/primus/examples/monitoring/prometheus.yml"))

	// Grafana reads these folders below its own.
	for _, kind := range []string{"datasources", "dashboards"} {
		folder := path.Join("grafana/provisioning", kind)
		assert.Equal(t, filepath.Join(monitoring, folder), filepath.Clean(grafana.host(t, "/etc/"+folder)))
	}
	sources := readYAML[struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}](t, "grafana/provisioning/datasources/prometheus.yaml")
	require.Len(t, sources.Datasources, 1)
	source := sources.Datasources[0]
	assert.Equal(t, 1, sources.APIVersion)
	assert.Equal(t, "prometheus proxy", source.Type+" "+source.Access)
	assert.True(t, source.IsDefault)
	assert.Contains(t, prometheus.Command, "--web.listen-address="+strings.TrimPrefix(source.URL, "http://"))
	scrapes := readYAML[struct {
		Global struct {
			ScrapeInterval     string `yaml:"scrape_interval"`
			EvaluationInterval string `yaml:"evaluation_interval"`
		}
		RuleFiles     []string         `yaml:"rule_files"`
		ScrapeConfigs []map[string]any `yaml:"scrape_configs"`
	}](t, "prometheus.yml")
	assert.Equal(t, scrapes.Global.ScrapeInterval, source.JSONData["timeInterval"], "what $__rate_interval is made of")
	for _, file := range scrapes.RuleFiles {
		assert.FileExists(t, filepath.Join(monitoring, file))
	}
	providers := readYAML[struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			AllowUIUpdates     bool `yaml:"allowUiUpdates"`
			Options            struct{ Path string }
		}
	}](t, "grafana/provisioning/dashboards/primus.yaml")
	require.Len(t, providers.Providers, 1)
	assert.Equal(t, "file", providers.Providers[0].Type)
	dashboards, err := filepath.Glob(filepath.Join(grafana.host(t, providers.Providers[0].Options.Path), "*.json"))
	require.NoError(t, err)
	assert.Len(t, dashboards, 3)
}
