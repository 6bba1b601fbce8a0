// Package policies holds small policies for OPA, one of each kind that decision logs tell apart; it stays free of any code
// that reads them.
package policies

import "embed"

// Files are the policies and their data as an OPA bundle has them.
//
//go:embed .manifest shop kubernetes system
var Files embed.FS
