// Package compose checks the Compose file and the values that its profile redis sets.
package compose
