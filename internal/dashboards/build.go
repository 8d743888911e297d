package dashboards

import "strings"

// schemaVersion is that of Grafana 9. Later versions migrate dashboards when they load them.
const schemaVersion = 37

// source is the data source that is selected in the dashboard.
var source = Datasource{Type: "prometheus", UID: "${datasource}"}

// selected are the labels that every query filters by; ofVendor adds the vendor.
const (
	selected = `run=~"$run",rank=~"$rank"`
	ofVendor = selected + `,vendor=~"$vendor"`
	window   = "[$__rate_interval]"
)

// fill puts the filters into an expression: {…} selects runs and ranks, {v…} vendors, too, and []
// is the window of a rate.
func fill(expr string) string {
	return strings.NewReplacer("{…}", "{"+selected+"}", "{v…}", "{"+ofVendor+"}", "[]", window).Replace(expr)
}

// variables returns the choices of a dashboard: data source, run, rank and more.
func variables(more ...Variable) Templating {
	return Templating{List: append([]Variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"},
		choice("run", "Run", `label_values(primus_train_running, run)`, ".+"),
		choice("rank", "Rank", `label_values(primus_train_running{run=~"$run"}, rank)`, ".+"),
	}, more...)}
}

// choice is a variable with the values of a label; all is the regular expression for all of them.
func choice(name, label, query, all string) Variable {
	return Variable{
		Name: name, Label: label, Type: "query", Datasource: &source, Query: query,
		Refresh: 2, Sort: 3, Multi: true, IncludeAll: true, AllValue: all,
	}
}

// mark is an annotation.
func mark(name, color, expr, text string) Annotation {
	return Annotation{
		Name: name, Datasource: source, Enable: true, IconColor: color, Expr: fill(expr), Step: "$__interval",
		TitleFormat: name, TextFormat: text,
	}
}

// query makes a query for lines with a legend.
func query(expr, legend string) Query {
	return Query{Datasource: source, Expr: fill(expr), LegendFormat: legend}
}

// rarely makes a query whose result may be empty for a healthy run.
func rarely(expr, legend string) Query { return optional(query(expr, legend)) }

// optional marks a query whose result may be empty for a healthy run.
func optional(q Query) Query {
	q.MayBeEmpty = true
	return q
}

// exemplars shows the steps of single observations in a chart.
func exemplars(q Query) Query {
	q.Exemplar = true
	return q
}

// column makes a query for a column of a table.
func column(expr string) Query {
	return Query{Datasource: source, Expr: fill(expr), Format: "table", Instant: true}
}

// panel returns a panel of a kind. about explains what it shows and how to read it.
func panel(kind, title, about, unit string, width, height int, queries ...Query) Panel {
	for i := range queries {
		queries[i].RefID = string(rune('A' + i))
	}
	return Panel{
		Type: kind, Title: title, Description: about, Datasource: &source, Targets: queries, GridPos: GridPos{W: width, H: height},
		FieldConfig: &FieldConfig{Defaults: FieldDefaults{Unit: unit}, Overrides: []any{}},
	}
}

// lines is a chart over time.
func lines(title, about, unit string, width int, queries ...Query) Panel {
	p := panel("timeseries", title, about, unit, width, 8, queries...)
	p.FieldConfig.Defaults.Custom = map[string]any{"lineWidth": 1, "fillOpacity": 5, "showPoints": "never", "spanNulls": false}
	p.Options = map[string]any{
		"legend":  map[string]any{"showLegend": true, "displayMode": "table", "placement": "right", "calcs": []string{"mean", "lastNotNull"}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// shares is a chart over time of parts of a whole.
func shares(title, about string, width int, queries ...Query) Panel {
	p := lines(title, about, "percentunit", width, queries...)
	zero, one := 0.0, 1.0
	p.FieldConfig.Defaults.Min, p.FieldConfig.Defaults.Max = &zero, &one
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 60
	return p
}

// logarithmic gives a chart an axis in powers of ten.
func logarithmic(p Panel) Panel {
	p.FieldConfig.Defaults.Custom["scaleDistribution"] = map[string]any{"type": "log", "log": 10}
	return p
}

// figure shows the last value. From the limits on, if there are any, it is orange and red.
func figure(title, about, unit string, width int, q Query, limits ...float64) Panel {
	p := panel("stat", title, about, unit, width, 4, q)
	steps := []Threshold{{Color: "green"}}
	for i := range limits {
		steps = append(steps, Threshold{Color: []string{"orange", "red"}[i], Value: &limits[i]})
	}
	p.FieldConfig.Defaults.Thresholds = &Thresholds{Mode: "absolute", Steps: steps}
	p.Options = map[string]any{"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "values": false}, "colorMode": "value", "graphMode": "area"}
	return p
}

// timeline shows the times at which a condition held.
func timeline(title, about string, width int, queries ...Query) Panel {
	p := panel("state-timeline", title, about, "", width, 8, queries...)
	p.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 70, "lineWidth": 0}
	p.Options = map[string]any{"showValue": "never", "mergeValues": true, "legend": map[string]any{"showLegend": false, "displayMode": "list", "placement": "bottom", "calcs": []string{}}}
	return p
}

// table joins the answers of its queries by their labels; columns names the value of each.
func table(title, about, unit string, width int, columns []string, queries ...Query) Panel {
	p := panel("table", title, about, unit, width, 9, queries...)
	names := map[string]string{}
	hidden := map[string]bool{"Time": true, "__name__": true, "instance": true, "job": true}
	for i, name := range columns {
		key := "Value"
		if len(columns) > 1 {
			key += " #" + string(rune('A'+i))
		}
		if name == "" {
			hidden[key] = true
			continue
		}
		names[key] = name
	}
	p.Transformations = []Transformation{
		{ID: "merge", Options: map[string]any{}},
		{ID: "organize", Options: map[string]any{"excludeByName": hidden, "renameByName": names}},
	}
	return p
}

// alerts shows the alerts of the project that fire for the selected runs, and those that belong to
// no run.
func alerts() group {
	const firing = `max by (alertname, severity, run, rank, op, impl) (ALERTS{alertname=~"Primus.+",alertstate="firing",run=~"$run|",rank=~"$rank|"})`
	runbook := "docs/howto/operations.md of Primus says what to do about each."
	list := table("Alerts that fire", "The alerts of metrics/rules that fire now; there should be none. "+runbook, "", 12, []string{""}, optional(column(firing)))
	when := timeline("When they fired", "The alerts of metrics/rules over time; there should be none. "+runbook, 12, rarely(firing, "{{alertname}} {{run}} {{rank}} {{op}} {{impl}}"))
	list.GridPos.H, when.GridPos.H = 6, 6
	return group{"Alerts", []Panel{list, when}}
}

// links lead to the other dashboards, with the choices and the time that are shown here.
func links() []Link {
	return []Link{{Type: "dashboards", Title: "Primus", Tags: []string{tag}, Icon: "external link", IncludeVars: true, KeepTime: true}}
}

// tag is the tag of all dashboards, which their links use.
const tag = "primus"

// group is a titled row of panels.
type group struct {
	title  string
	panels []Panel
}

// columns of the grid of Grafana.
const columns = 24

// layout places the panels of groups from left to right and numbers them.
func layout(groups ...group) []Panel {
	var all []Panel
	y := 0
	place := func(p Panel, x int) {
		p.ID, p.GridPos.X, p.GridPos.Y = len(all)+1, x, y
		all = append(all, p)
	}
	for _, g := range groups {
		place(Panel{Type: "row", Title: g.title, GridPos: GridPos{W: columns, H: 1}, Collapsed: new(bool), Panels: &[]Panel{}}, 0)
		y++
		x, tallest := 0, 0
		for _, p := range g.panels {
			if x+p.GridPos.W > columns {
				x, y, tallest = 0, y+tallest, 0
			}
			place(p, x)
			x, tallest = x+p.GridPos.W, max(tallest, p.GridPos.H)
		}
		y += tallest
	}
	return all
}
