package torchtitan

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// jobConfigFile is where TorchTitan describes the configuration that it reads from TOML.
const jobConfigFile = "torchtitan/config/job_config.py"

// section is a section of the job configuration, with its keys.
type section map[string]field

// field is a key of the job configuration.
type field struct {
	below    section // nil for a value
	nullable bool    // None is its default
}

// readJobConfig reads the sections and keys of the job configuration of a source tree.
func readJobConfig(tree string) (section, error) {
	file := filepath.Join(tree, filepath.FromSlash(jobConfigFile))
	text, err := os.ReadFile(file)
	if err != nil {
		if python.Exists(filepath.Join(tree, "torchtitan")) {
			return nil, fmt.Errorf("framework %s: the source tree %s has no %s: this layout, whose configuration is Python code, is not supported; want a version that reads TOML, such as 0.2.2",
				Framework, tree, jobConfigFile)
		}
		return nil, fmt.Errorf("framework %s: %s is not a source tree of TorchTitan: %w", Framework, tree, err)
	}
	parsed, err := pysource.Parse(file, text)
	if err != nil {
		return nil, err
	}
	classes := map[string]*pysource.ClassDef{}
	for _, s := range parsed.Body {
		if c, ok := s.(*pysource.ClassDef); ok {
			classes[c.Name] = c
		}
	}
	if classes["JobConfig"] == nil {
		return nil, fmt.Errorf("%s: it has no class JobConfig, expected the dataclass of the job configuration", file)
	}
	return fields(classes, "JobConfig", map[string]bool{}), nil
}

// fields returns the annotated names of a class. For an annotation that is a class of the file it
// includes the names of that class.
func fields(classes map[string]*pysource.ClassDef, name string, open map[string]bool) section {
	open[name] = true
	defer delete(open, name)
	s := section{}
	for _, stmt := range classes[name].Body {
		a, ok := stmt.(*pysource.AnnAssign)
		if !ok {
			continue
		}
		target, ok := a.Target.(*pysource.Name)
		if !ok {
			continue
		}
		var f field
		if c, ok := a.Value.(*pysource.Constant); ok {
			f.nullable = c.Value == nil
		}
		if of, ok := a.Annotation.(*pysource.Name); ok && classes[of.ID] != nil && !open[of.ID] {
			f.below = fields(classes, of.ID, open)
		}
		s[target.ID] = f
	}
	return s
}
