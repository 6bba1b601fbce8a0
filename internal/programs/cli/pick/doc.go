// Package pick has the flags that choose dead letters, and writes a filter as such flags again.
package pick
