// Package logs has the commands that read stored decisions: logs, why, diff and stats.
package logs
