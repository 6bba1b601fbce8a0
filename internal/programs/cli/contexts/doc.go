// Package contexts keeps the names of desks that a person asks, and has the commands that change them.
package contexts
