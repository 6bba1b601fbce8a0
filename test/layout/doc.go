// Package layout holds the map of the repository: which folder may import which. The map itself is in .golangci.yml, one rule for each
// folder, and the linter enforces it. The tests here hold that the map is whole and true.
package layout
