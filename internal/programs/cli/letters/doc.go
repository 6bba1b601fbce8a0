// Package letters has the commands on dead letters: list, groups, show, retry, resolve, surplus and report.
package letters
