package dashboards_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rule is what Grafana's dashboard schema asks of a value.
type rule interface {
	check(at string, v any) []string
}

// object has these fields; a name that ends in ? may be absent, and "*" stands for any other.
type object map[string]rule

func (o object) check(at string, v any) (faults []string) {
	m, ok := v.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: given %T, want an object", at, v)}
	}
	for name, r := range o {
		optional := name[len(name)-1] == '?'
		key := name
		if optional {
			key = name[:len(name)-1]
		}
		field, there := m[key]
		switch {
		case there:
			faults = append(faults, r.check(at+"."+key, field)...)
		case !optional && key != "*":
			faults = append(faults, at+"."+key+" is missing")
		}
	}
	for key := range m {
		_, known := o[key]
		_, optional := o[key+"?"]
		_, open := o["*"]
		if !known && !optional && !open {
			faults = append(faults, at+"."+key+" is unknown")
		}
	}
	return faults
}

// list holds values that keep a rule.
type list struct{ of rule }

func (l list) check(at string, v any) (faults []string) {
	all, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprintf("%s: given %T, want a list", at, v)}
	}
	for i, each := range all {
		faults = append(faults, l.of.check(fmt.Sprintf("%s[%d]", at, i), each)...)
	}
	return faults
}

// match is a text that matches an expression.
type match string

func (m match) check(at string, v any) []string {
	if s, ok := v.(string); ok && regexp.MustCompile("^(?:"+string(m)+")$").MatchString(s) {
		return nil
	}
	return []string{fmt.Sprintf("%s: given %#v, want %s", at, v, string(m))}
}

// whole is a whole number in a range.
type whole struct{ least, most float64 }

func (w whole) check(at string, v any) []string {
	if n, ok := v.(float64); ok && n == math.Trunc(n) && n >= w.least && n <= w.most {
		return nil
	}
	return []string{fmt.Sprintf("%s: given %#v, want a whole number from %v to %v", at, v, w.least, w.most)}
}

// value is a value of a type of JSON.
type value[T any] struct{}

func (value[T]) check(at string, v any) []string {
	if _, ok := v.(T); ok {
		return nil
	}
	return []string{fmt.Sprintf("%s: given %#v, want a %T", at, v, *new(T))}
}

type (
	flag   = value[bool]
	number = value[float64]
	text   = value[string]
)

// thresholds begin without a value and rise.
type thresholds struct{}

func (thresholds) check(at string, v any) (faults []string) {
	faults = object{"mode": match("absolute|percentage"), "steps": list{object{"color": match("[a-z-]+|#[0-9a-f]{6}"), "value": anything{}}}}.check(at, v)
	if len(faults) > 0 {
		return faults
	}
	last := math.Inf(-1)
	for i, step := range v.(map[string]any)["steps"].([]any) {
		n, ok := step.(map[string]any)["value"].(float64)
		if ok == (i == 0) || ok && n <= last {
			faults = append(faults, fmt.Sprintf("%s.steps[%d]: want no value in the first step, then rising ones", at, i))
		}
		last = n
	}
	return faults
}

// anything is any value.
type anything struct{}

func (anything) check(string, any) []string { return nil }

// panel has a rule for each type of panel.
type panel struct{}

func (panel) check(at string, v any) []string {
	datasource := object{"type": match("prometheus"), "uid": match(`\$\{datasource\}`)}
	legend := object{"showLegend": flag{}, "displayMode": match("list|table|hidden"), "placement": match("bottom|right"), "calcs": list{text{}}}
	options := map[string]rule{
		"stat": object{
			"reduceOptions": object{"calcs": list{match("lastNotNull|last|mean|max|min|sum")}, "values": flag{}},
			"colorMode":     match("none|value|background"), "graphMode": match("none|area"),
		},
		"timeseries":     object{"legend": legend, "tooltip": object{"mode": match("single|multi|none"), "sort": match("none|asc|desc")}},
		"state-timeline": object{"legend": legend, "mergeValues": flag{}, "showValue": match("auto|always|never")},
	}
	target := object{
		"refId": match("[A-Z]"), "datasource": datasource, "expr": match("(?s).+"), "legendFormat?": text{}, "format?": match("table|time_series|heatmap"),
		"instant?": flag{}, "exemplar?": flag{},
	}
	want := object{
		"id": whole{1, 1000}, "type": match("row|stat|timeseries|table|state-timeline"), "title": match(".+"), "description?": match(".+"),
		"gridPos": object{"x": whole{0, 23}, "y": whole{0, 1000}, "w": whole{1, 24}, "h": whole{1, 30}},
	}
	kind, _ := v.(map[string]any)["type"].(string)
	if kind == "row" {
		want["collapsed"], want["panels"] = flag{}, list{panel{}}
		return want.check(at, v)
	}
	want["datasource"], want["targets"] = datasource, list{target}
	want["transformations?"] = list{object{"id": match("merge|organize"), "options": object{"*": anything{}}}}
	fields := "fieldConfig?" // a table may do without
	if o := options[kind]; o != nil {
		want["options"], fields = o, "fieldConfig"
	}
	want[fields] = object{
		"defaults": object{
			"unit?": match("ops|reqps|percentunit|none|short|s|cps|flops|bytes|Bps"), "min?": number{}, "max?": number{}, "decimals?": whole{0, 9},
			"thresholds?": thresholds{}, "custom?": object{"*": anything{}},
		},
		"overrides": list{anything{}},
	}
	return want.check(at, v)
}

// TestSchema checks the files against what Grafana's classic dashboard schema says of the parts
// that they have. Source: kinds/dashboard/dashboard_kind.cue of Grafana 11, and the options of its
// panels stat, timeseries and state-timeline.
func TestSchema(t *testing.T) {
	source := object{"type": match("prometheus"), "uid": match(`\$\{datasource\}`)}
	dashboard := object{
		"uid": match("[a-zA-Z0-9_-]{1,40}"), "title": match(".+"), "description": text{}, "tags": list{match(".+")},
		"links": list{object{
			"type": match("dashboards|link"), "title": match(".+"), "tags": list{match(".+")}, "icon": match("external link|dashboard|doc|info|question"),
			"tooltip": text{}, "url": text{}, "asDropdown": flag{}, "targetBlank": flag{}, "includeVars": flag{}, "keepTime": flag{},
		}},
		"schemaVersion": whole{36, 41}, "editable": flag{}, "graphTooltip": whole{0, 2}, "refresh": match(`\d+[smh]`), "timezone": match("browser|utc|"),
		"time": object{"from": match(`now-\d+[smhd]`), "to": match("now")},
		"annotations": object{"list": list{object{
			"name": match(".+"), "datasource": source, "enable": flag{}, "iconColor": match("[a-z-]+"), "expr": match(".+"), "step": match(".+"),
			"titleFormat": text{}, "textFormat": text{},
		}}},
		"templating": object{"list": list{object{
			"name": match("[a-z_]+"), "label": match(".+"), "type": match("datasource|query"), "datasource?": source, "query": match(".+"),
			"refresh?": whole{0, 2}, "sort?": whole{0, 8}, "multi?": flag{}, "includeAll?": flag{}, "allValue?": match(".+"),
		}}},
		"panels": list{panel{}},
	}
	files, err := filepath.Glob("../../metrics/dashboards/*.json")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(content, &v))
		assert.Empty(t, dashboard.check(file, v))
		for _, p := range v.(map[string]any)["panels"].([]any) {
			var refs []string
			targets, _ := p.(map[string]any)["targets"].([]any)
			for _, target := range targets {
				refs = append(refs, target.(map[string]any)["refId"].(string))
			}
			assert.Len(t, slices.Compact(slices.Sorted(slices.Values(refs))), len(refs), "%s: queries of a panel have different names", file)
		}
	}
}
