// Command chartfiles writes the generated files of the Helm chart. The settings of values.schema.json come from the
// table that the programs parse. The alert rules and the dashboard are copied, as a chart can only read its own files.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"docket/internal/service/config"
)

const chart = "deploy/helm/docket"

// copies are files of the chart by where they come from.
var copies = map[string]string{
	"deploy/prometheus/docket.rules.yml": chart + "/files/docket.rules.yml",
	"deploy/grafana/docket.json":         chart + "/files/docket.json",
}

func main() {
	files, err := render(".")
	for name, content := range files {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(name, content, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chartfiles:", err)
		os.Exit(1)
	}
}

// render gives the files by their paths below root. A copy of what is not there is left out.
func render(root string) (map[string][]byte, error) {
	schema, err := renderSchema()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{chart + "/values.schema.json": schema}
	for from, to := range copies {
		content, err := os.ReadFile(filepath.Join(root, from))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what the chart copies: %w", err)
		}
		files[to] = content
	}
	return files, nil
}

// reserved are settings that the chart makes of its own values, and so refuses.
var reserved = map[string]bool{
	"DOCKET_KAFKA_BROKERS": true, "DOCKET_KAFKA_TLS": true, "DOCKET_KAFKA_TLS_CA": true, "DOCKET_KAFKA_TLS_CERT": true, "DOCKET_KAFKA_TLS_KEY": true,
	"DOCKET_KAFKA_SASL_MECHANISM": true, "DOCKET_KAFKA_SASL_USERNAME": true, "DOCKET_SPOOL_DIR": true, "DOCKET_HTTP_ADDR": true, "DOCKET_SHUTDOWN_TIMEOUT": true,
	"DOCKET_DESK_API_ADDR": true, "DOCKET_DESK_API_TLS_CERT": true, "DOCKET_DESK_API_TLS_KEY": true, "DOCKET_DESK_API_CLIENT_CA": true,
	"DOCKET_COLLECTOR_ADDR": true, "DOCKET_COLLECTOR_TLS_CERT": true, "DOCKET_COLLECTOR_TLS_KEY": true, "DOCKET_COLLECTOR_CLIENT_CA": true,
	"DOCKET_COLLECTOR_PLAINTEXT": true, "DOCKET_COLLECTOR_ANONYMOUS": true,
	"DOCKET_LANES": true, "DOCKET_COLLECTOR_URGENT": true, "DOCKET_COLLECTOR_SHARE": true,
	"DOCKET_LIMIT_ROWS": true, "DOCKET_LIMIT_LOW_ROWS": true, "DOCKET_LIMIT_BURST": true, "DOCKET_LIMIT_CALENDAR": true,
	"DOCKET_SHARDS": true, "DOCKET_SHARD": true,
}

//go:embed schema.json
var skeleton []byte

type object = map[string]any

// renderSchema is schema.json with the settings, and with what all components have in each of them.
func renderSchema() ([]byte, error) {
	var schema struct {
		Schema     string            `json:"$schema"`
		Title      string            `json:"title"`
		Type       string            `json:"type"`
		Additional bool              `json:"additionalProperties"`
		Properties map[string]object `json:"properties"`
		Defs       map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(skeleton, &schema); err != nil {
		return nil, fmt.Errorf("read schema.json: %w", err)
	}
	// The same properties in four places, as additionalProperties does not see through a reference.
	for _, name := range []string{"consumer", "replayer", "desk", "collector"} {
		properties, ok := schema.Properties[name]["properties"].(object)
		if !ok {
			return nil, fmt.Errorf("schema.json has no component %s", name)
		}
		for property, what := range schema.Defs["component"] {
			if name == "collector" && property == "databaseSecretName" {
				continue // it has none
			}
			properties[property] = what
		}
	}
	delete(schema.Defs, "component")
	schema.Defs["settings"] = settings(func(config.Setting) bool { return true })
	for name, program := range map[string]config.Program{"consumerSettings": config.Consumer, "replayerSettings": config.Replayer, "deskSettings": config.Desk, "collectorSettings": config.Collector} {
		schema.Defs[name] = settings(func(s config.Setting) bool { return s.Of(program) })
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

// settings is an object of those settings that want takes and that are neither secret nor reserved.
func settings(want func(config.Setting) bool) object {
	properties := object{}
	for _, s := range config.Table() {
		if want(s) && !s.Secret && !reserved[s.Name] {
			properties[s.Name] = value(s)
		}
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

const (
	duration = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`
	size     = `[0-9]+ ?(TiB|GiB|MiB|KiB|TB|GB|MB|KB|kB|B)`
)

// value judges one setting as far as a schema can; the program judges the rest and says so.
func value(s config.Setting) object {
	what := object{"description": s.Text}
	lowest, lowErr := strconv.Atoi(s.Min)
	highest, highErr := strconv.Atoi(s.Max)
	switch {
	case len(s.OneOf) > 0:
		what["enum"] = s.OneOf
	case s.Unit == "true or false":
		what["enum"] = []any{true, false, "true", "false"}
	case strings.HasPrefix(s.Unit, "durations"):
		what["type"], what["pattern"] = "string", "^"+duration+"(,"+duration+")*$"
	case s.Unit == "duration":
		what["type"], what["pattern"] = "string", "^"+duration+"$"
	case s.Unit == "size":
		what["type"], what["pattern"] = "string", "^"+size+"$"
	case lowErr == nil && highErr == nil:
		what["type"], what["minimum"], what["maximum"], what["pattern"] = []string{"integer", "string"}, lowest, highest, "^[0-9]+$"
	default:
		what["type"] = "string"
	}
	return what
}
