// Package docs tests the pages of documentation: each link leads somewhere, each
// page has a door, and each path that a map names exists.
package docs
