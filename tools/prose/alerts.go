package main

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var template = regexp.MustCompile(`\{\{.*?\}\}`)

// alerts checks the summary and the description of each alert.
func alerts(file string, text []byte) ([]Finding, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var found []Finding
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				if value.Kind == yaml.ScalarNode && (key.Value == "summary" || key.Value == "description") {
					said := plain(template.ReplaceAllString(value.Value, code))
					found = append(found, check(file, block{[]string{strings.ReplaceAll(said, "\n", " ")}, value.Line, false})...)
				}
			}
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(&root)
	return found, nil
}
