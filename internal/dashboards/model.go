package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Dashboard is a dashboard of Grafana.
type Dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	Links         []Link      `json:"links"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: one cursor in all panels
	Refresh       string      `json:"refresh"`
	Timezone      string      `json:"timezone"`
	Time          TimeRange   `json:"time"`
	Annotations   Annotations `json:"annotations"`
	Templating    Templating  `json:"templating"`
	Panels        []Panel     `json:"panels"`
}

// Link leads to other dashboards.
type Link struct {
	Type        string   `json:"type"` // dashboards: those with the tags
	Title       string   `json:"title"`
	Tags        []string `json:"tags"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	URL         string   `json:"url"`
	AsDropdown  bool     `json:"asDropdown"`
	TargetBlank bool     `json:"targetBlank"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// TimeRange is the initial time range of a dashboard.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Annotations are the marks in all panels.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation marks the times at which an expression has a value.
type Annotation struct {
	Name        string     `json:"name"`
	Datasource  Datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	IconColor   string     `json:"iconColor"`
	Expr        string     `json:"expr"`
	Step        string     `json:"step"`
	TitleFormat string     `json:"titleFormat"`
	TextFormat  string     `json:"textFormat"`
}

// Templating are the variables of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a choice at the head of a dashboard.
type Variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Datasource *Datasource `json:"datasource,omitempty"`
	Query      string      `json:"query"`
	Refresh    int         `json:"refresh,omitempty"` // 2: when the time range changes
	Sort       int         `json:"sort,omitempty"`
	Multi      bool        `json:"multi,omitempty"`
	IncludeAll bool        `json:"includeAll,omitempty"`
	AllValue   string      `json:"allValue,omitempty"`
}

// Datasource names where queries go.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is a row or a chart.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Collapsed       *bool            `json:"collapsed,omitempty"` // of a row; the panels of an expanded row follow it
	Panels          *[]Panel         `json:"panels,omitempty"`    // of a row that is collapsed
	Description     string           `json:"description,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	Targets         []Query          `json:"targets,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []Transformation `json:"transformations,omitempty"`
}

// GridPos is a place in a grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Query asks Prometheus.
type Query struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Format       string     `json:"format,omitempty"`
	Instant      bool       `json:"instant,omitempty"`
	Exemplar     bool       `json:"exemplar,omitempty"`

	// MayBeEmpty marks a query whose result may be empty for a healthy run.
	MayBeEmpty bool `json:"-"`
}

// FieldConfig is the appearance of values.
type FieldConfig struct {
	Defaults  FieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

// FieldDefaults is the appearance of all values of a panel.
type FieldDefaults struct {
	Unit       string         `json:"unit,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Thresholds colour values.
type Thresholds struct {
	Mode  string      `json:"mode"`
	Steps []Threshold `json:"steps"`
}

// Threshold is a colour from a value on; the first has none.
type Threshold struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Transformation changes what queries of a table returned.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// File returns the name of the file of a dashboard.
func (d *Dashboard) File() string { return d.UID + ".json" }

// JSON returns the dashboard as Grafana reads it.
func (d *Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// Queries returns the queries of all panels, and those of annotations, which may be empty.
func (d *Dashboard) Queries() []Query {
	var all []Query
	for _, p := range d.Panels {
		all = append(all, p.Targets...)
	}
	for _, a := range d.Annotations.List {
		all = append(all, Query{Datasource: a.Datasource, Expr: a.Expr, MayBeEmpty: true})
	}
	return all
}

// All returns the dashboards.
func All() []*Dashboard { return []*Dashboard{dispatch(), training(), generation()} }

// Write writes all dashboards into a directory.
func Write(dir string) error {
	for _, d := range All() {
		text, err := d.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, d.File()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
