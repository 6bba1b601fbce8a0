package main

import (
	"encoding/json"
	"fmt"
)

// row is a headline with panels below it, from left to right and on to the next line where one is full.
type row struct {
	title  string
	panels []panel
}

// panel is one picture.
type panel struct {
	title   string
	about   string // the normal value, and the remedy
	kind    string // Grafana's name for the sort of panel
	w, h    int    // of 24 columns; in rows of 30 pixels
	queries []query
	unit    string // Grafana's name for it
	steps   []step // of colour; none: green
	mapped  []mapping
	stacked bool
	max     float64 // of the axis; 0: as it comes
	text    string  // stat: Grafana's textMode
	none    string  // shown where there is no data
}

// query is one question to Prometheus.
type query struct {
	expr   string
	legend string
	quiet  bool // no answer is a good sign: nothing of the kind happened
}

// step is where a colour begins.
type step struct {
	at    float64
	color string
}

// mapping shows a text for values from here on, up to and with to where open is false.
type mapping struct {
	from, to float64
	open     bool
	text     string
	color    string
}

const (
	columns    = 24
	datasource = "${datasource}"
)

type object = map[string]any

// render is the dashboard as Grafana reads it.
func render(rows []row) ([]byte, error) {
	text, err := json.MarshalIndent(dashboard(rows), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the dashboard: %w", err)
	}
	return append(text, '\n'), nil
}

func dashboard(rows []row) object {
	var panels []object
	y := 0
	for _, r := range rows {
		panels = append(panels, object{
			"id": len(panels) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
		})
		y++
		x, line := 0, 0
		for _, p := range r.panels {
			if x+p.w > columns {
				x, y, line = 0, y+line, 0
			}
			panels = append(panels, p.object(len(panels)+1, x, y))
			x, line = x+p.w, max(line, p.h)
		}
		y += line
	}
	return object{
		"uid": "docket", "title": "Docket", "tags": []string{"docket", "kafka", "postgres"},
		"description":   "Decision logs from Kafka into Postgres: is it keeping up, where do records go, is it healthy.",
		"schemaVersion": 39, "version": 1, "id": nil, "editable": true, "graphTooltip": 1, "fiscalYearStartMonth": 0, "liveNow": false,
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "timepicker": object{}, "timezone": "", "weekStart": "",
		"annotations": object{"list": []object{}}, "links": []object{},
		"templating": object{"list": []object{
			{
				"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0,
				"includeAll": false, "multi": false, "options": []object{}, "current": object{}, "regex": "", "skipUrlSync": false,
			},
			variable("job", "Job", `label_values(docket_build_info, job)`),
			variable("instance", "Instance", `label_values(docket_build_info{job=~"$job"}, instance)`),
		}},
		"panels": panels,
	}
}

func variable(name, label, ask string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": source(), "definition": ask,
		"query":      object{"query": ask, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
		"includeAll": true, "allValue": ".+", "multi": true, "refresh": 2, "sort": 1, "hide": 0, "options": []object{}, "regex": "", "skipUrlSync": false,
		"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
	}
}

func source() object { return object{"type": "prometheus", "uid": datasource} }

// instant says that a kind shows one moment.
func instant(kind string) bool { return kind == "stat" || kind == "bargauge" || kind == "table" }

func (p panel) object(id, x, y int) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": ref(i), "datasource": source(), "expr": q.expr, "legendFormat": q.legend, "editorMode": "code",
			"instant": instant(p.kind), "range": !instant(p.kind),
		})
		if p.kind == "table" {
			targets[i]["format"] = "table"
		}
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source(), "targets": targets,
		"gridPos":     object{"x": x, "y": y, "w": p.w, "h": p.h},
		"fieldConfig": object{"defaults": p.defaults(), "overrides": []object{}},
		"options":     p.options(),
	}
}

func (p panel) defaults() object {
	steps := []object{{"color": "green", "value": nil}}
	for _, s := range p.steps {
		steps = append(steps, object{"color": s.color, "value": s.at})
	}
	d := object{
		"unit": p.unit, "color": object{"mode": "palette-classic"}, "mappings": p.mappings(),
		"thresholds": object{"mode": "absolute", "steps": steps},
	}
	if p.none != "" {
		d["noValue"] = p.none
	}
	if p.max > 0 {
		d["max"] = p.max
	}
	switch p.kind {
	case "timeseries":
		stacking, fill := "none", 5
		if p.stacked {
			stacking, fill = "normal", 40
		}
		marks := "off"
		if len(p.steps) > 0 {
			marks = "dashed"
		}
		d["min"] = 0
		d["custom"] = object{
			"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
			"stacking": object{"mode": stacking, "group": "A"}, "thresholdsStyle": object{"mode": marks}, "axisPlacement": "auto", "axisLabel": "",
			"scaleDistribution": object{"type": "linear"},
		}
	case "state-timeline":
		d["color"] = object{"mode": "thresholds"}
		d["custom"] = object{"lineWidth": 0, "fillOpacity": 80, "spanNulls": false}
	default:
		d["color"] = object{"mode": "thresholds"}
	}
	return d
}

func (p panel) mappings() []object {
	all := []object{}
	for i, m := range p.mapped {
		var to any
		if !m.open {
			to = m.to
		}
		all = append(all, object{"type": "range", "options": object{"from": m.from, "to": to, "result": object{"text": m.text, "color": m.color, "index": i}}})
	}
	return all
}

func (p panel) options() object {
	reduce := object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
	switch p.kind {
	case "stat":
		mode := p.text
		if mode == "" {
			mode = "value"
		}
		return object{"colorMode": "background", "graphMode": "none", "justifyMode": "center", "orientation": "auto", "textMode": mode, "reduceOptions": reduce, "wideLayout": true}
	case "bargauge":
		return object{"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color", "minVizHeight": 12, "minVizWidth": 8, "reduceOptions": reduce}
	case "state-timeline":
		return object{
			"alignValue": "left", "mergeValues": true, "rowHeight": 0.9, "showValue": "never", "tooltip": object{"mode": "single", "sort": "none"},
			"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": false},
		}
	case "table":
		return object{"cellHeight": "sm", "showHeader": true, "footer": object{"show": false}}
	}
	return object{
		"tooltip": object{"mode": "multi", "sort": "desc"},
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
	}
}
