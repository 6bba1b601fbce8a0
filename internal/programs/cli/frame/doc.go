// Package frame is the part that all commands of docket share: the [Call] that each of them gets, its settings, errors and exit
// codes, the person who decides, and flags with their completions.
//
// It stays free of single commands.
package frame
